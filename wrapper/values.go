// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// valueHolder keeps alive the values that a native matrix refers to, and keeps them from changing under a product.
type valueHolder struct {
	use    *semaphore.Weighted // 1 for a product, changeValues to change them: a lock that can be given up on
	pinned runtime.Pinner      // on the CPU: the caller's slice
	buffer *handle             // in device memory, the caller's
	keep   any                 // the public buffer: held as long as it is referred to, or it would be freed

	mu      sync.Mutex
	queues  queueSet     // whose work reads them
	writers atomic.Int32 // that wait
}

// changeValues is above any number of products at a time.
const changeValues = 1 << 32

// beginChange waits for the products in progress, those in streams among them, and keeps others from beginning, until
// endChange; or it gives up where ctx ends.
func (v *valueHolder) beginChange(ctx context.Context) error {
	v.mu.Lock()
	v.writers.Add(1)
	queues := v.queues.list()
	v.mu.Unlock()
	defer v.writers.Add(-1)
	for _, q := range queues {
		if err := q.wait(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return v.use.Acquire(ctx, changeValues)
}

func (v *valueHolder) endChange() { v.use.Release(changeValues) }

// enter notes that work of q reads the values. It returns whether a writer waits for the end of that.
func (v *valueHolder) enter(q *queue) (wanted bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.add(q)
	return v.writers.Load() > 0
}

// leave takes back enter.
func (v *valueHolder) leave(q *queue) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queues.remove(q)
}

func (v *valueHolder) replace(pinned runtime.Pinner, buffer *handle, keep any) {
	v.pinned.Unpin()
	v.pinned, v.buffer, v.keep = pinned, buffer, keep
}

// useValues keeps the values of the plans' matrices from changing until release is called, or gives up where ctx ends.
//
// Each matrix is taken once, however many of the plans are of it: a second time would wait behind a writer that waits
// for the first. And all are taken in the order of their numbers: two callers that took them in different orders could
// each wait, behind a writer, for what the other has.
func useValues(ctx context.Context, plans ...*Plan) (release func(), err error) {
	var matrices []*Matrix
	for _, p := range plans {
		matrices = append(matrices, p.matrix)
	}
	slices.SortFunc(matrices, func(a, b *Matrix) int { return cmp.Compare(a.number, b.number) })
	matrices = slices.Compact(matrices)
	taken := 0
	release = func() {
		for _, m := range matrices[:taken] {
			m.values.use.Release(1)
		}
	}
	for _, m := range matrices {
		if err := m.values.use.Acquire(ctx, 1); err != nil {
			release()
			return nil, err
		}
		taken++
	}
	return release, nil
}
