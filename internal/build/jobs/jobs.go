// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Job is one piece of work.
type Job struct {
	Memory int64 // bytes that it is expected to take at its peak
	Run    func(ctx context.Context) error
}

// Run runs all jobs, starting them in order. No more than limits.Cores run at
// once, and no more than fit limits.Memory together; one that needs more than
// there is runs alone. The first failure cancels the context of those that
// run, no further one is started, and that failure is returned when all have
// ended.
func Run(ctx context.Context, limits Limits, jobs []Job) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	cores := semaphore.NewWeighted(int64(max(1, limits.Cores)))
	total := max(1, limits.Memory)
	memory := semaphore.NewWeighted(total)
	var running sync.WaitGroup
	for _, job := range jobs {
		need := min(max(0, job.Memory), total)
		if cores.Acquire(ctx, 1) != nil || memory.Acquire(ctx, need) != nil || ctx.Err() != nil {
			break
		}
		running.Go(func() {
			// Stopped before the place is given up, so that no other job takes it.
			if err := job.Run(ctx); err != nil {
				stop(err)
			}
			memory.Release(need)
			cores.Release(1)
		})
	}
	running.Wait()
	return context.Cause(ctx)
}
