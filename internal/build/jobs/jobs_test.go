// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

func TestRunKeepsWithinLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Cores: rapid.IntRange(1, 5).Draw(t, "cores"), Memory: rapid.Int64Range(1, 20).Draw(t, "memory")}
		needs := rapid.SliceOfN(rapid.Int64Range(0, 30), 0, 30).Draw(t, "needs")
		var mu sync.Mutex
		var running, done int
		var memory int64
		var jobs []Job
		for _, need := range needs {
			jobs = append(jobs, Job{Memory: need, Run: func(context.Context) error {
				mu.Lock()
				running++
				memory += min(need, limits.Memory)
				if running > limits.Cores || memory > limits.Memory {
					t.Errorf("%d jobs with %d bytes at once", running, memory)
				}
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				running--
				memory -= min(need, limits.Memory)
				done++
				mu.Unlock()
				return nil
			}})
		}
		if err := Run(context.Background(), limits, jobs); err != nil || done != len(needs) {
			t.Fatalf("%d of %d done, %v", done, len(needs), err)
		}
	})
}

func TestFirstFailureStopsTheRest(t *testing.T) {
	failure := errors.New("failed")
	started := 0
	waiting := make(chan struct{})
	jobs := []Job{
		{Run: func(ctx context.Context) error { close(waiting); <-ctx.Done(); return ctx.Err() }},
		{Run: func(context.Context) error { <-waiting; return failure }},
	}
	for range 10 {
		jobs = append(jobs, Job{Run: func(context.Context) error { started++; return nil }})
	}
	if err := Run(t.Context(), Limits{Cores: 2, Memory: 1}, jobs); !errors.Is(err, failure) {
		t.Errorf("got %v, want the first failure", err)
	}
	if started > 0 {
		t.Errorf("%d jobs were started after the failure", started)
	}
}

func TestCancelledContextRunsNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("stop")
	cancel(cause)
	err := Run(ctx, Limits{Cores: 1, Memory: 1}, []Job{{Run: func(context.Context) error {
		t.Error("a job ran")
		return nil
	}}})
	if !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

func TestMachine(t *testing.T) {
	got := Machine(fstest.MapFS{"proc/meminfo": &fstest.MapFile{Data: []byte("MemAvailable: 50 kB\n")}})
	if got.Memory != 50*1024 || got.Cores < 1 {
		t.Errorf("got %+v", got)
	}
}
