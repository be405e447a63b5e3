// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// A product may be the first thing that a thread of the operating system does with the GPU: goroutines move between
// threads as they please.
func TestFirstCallOfAThread(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, kernel := range kernelsOf(t, engine) {
		t.Run(kernel.Name, func(t *testing.T) {
			ofType(kernel, firstCalls[BFloat16], firstCalls[Float16], firstCalls[float32], firstCalls[float64])(t, engine, kernel)
		})
	}
}

func firstCalls[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	p := newProduct[T, int32](shape{rows: blockM, cols: blockK, n: 8, blockM: blockM, blockK: blockK, density: 1, alpha: 1, kernel: kernel.Name})
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
	defer plan.Close()
	b := inBuffer(t, engine, p.b, 0)
	defer b.Buffer.Close()

	const threads = 8
	var results [threads]DeviceDense[T]
	for i := range results {
		results[i] = inBuffer(t, engine, p.newC(), 0)
		defer results[i].Buffer.Close()
	}
	var running, done sync.WaitGroup
	failures := make([]error, threads)
	running.Add(threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and is of no use to others
			running.Done()
			running.Wait() // so that each has a thread of its own
			failures[i] = plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: b, C: results[i]})
		})
	}
	done.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	for _, c := range results {
		got := p.newC()
		if err := c.Buffer.Read(context.Background(), got.Data); err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), got)
	}
}
