// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"math"
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
	const meminfo = "MemTotal:  100 kB\nMemAvailable:  50 kB\n"
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"nothing known": {fstest.MapFS{}, math.MaxInt64},
		"no cgroup":     {fstest.MapFS{"proc/meminfo": file(meminfo)}, 50 * 1024},
		"version 2, a parent is tighter": {fstest.MapFS{
			"proc/meminfo":                   file(meminfo),
			"proc/self/cgroup":               file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max":   file("max\n"),
			"sys/fs/cgroup/a/memory.max":     file("30000\n"),
			"sys/fs/cgroup/a/memory.current": file("20000\n"),
			"sys/fs/cgroup/a/memory.stat":    file("anon 1\ninactive_file 15000\n"),
		}, 25000},
		"version 2, seen from outside": {fstest.MapFS{
			"proc/self/cgroup":             file("0::/../x\n"),
			"sys/fs/cgroup/memory.max":     file("1000\n"),
			"sys/fs/cgroup/memory.current": file("5000\n"),
		}, 0},
		"version 1": {fstest.MapFS{
			"proc/meminfo":     file(meminfo),
			"proc/self/cgroup": file("5:cpu:/c\n4:memory:/c\n"),
			"sys/fs/cgroup/memory/c/memory.limit_in_bytes": file("9000"),
			"sys/fs/cgroup/memory/c/memory.usage_in_bytes": file("1000"),
		}, 8000},
	} {
		if got := Machine(c.files); got.Memory != c.want || got.Cores < 1 {
			t.Errorf("%s: got %+v, want %d bytes", name, got, c.want)
		}
	}
}
