// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
)

// A product may be the first thing that a thread of the operating system does with the GPU: goroutines move between
// threads as they please.
func TestFirstCallOfAThread(t *testing.T) {
	ctx := newContext(t, CUDA)
	for _, kernel := range kernelsOf(t, ctx) {
		t.Run(kernel.Name, func(t *testing.T) {
			switch kernel.DType {
			case "bf16":
				firstCalls[BFloat16](t, ctx, kernel)
			case "fp16":
				firstCalls[Float16](t, ctx, kernel)
			default:
				firstCalls[float32](t, ctx, kernel)
			}
		})
	}
}

func firstCalls[T Element](t *testing.T, ctx *Engine, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	p := newProduct[T, int32](shape{rows: blockM, cols: blockK, n: 8, blockM: blockM, blockK: blockK, density: 1, alpha: 1, kernel: kernel.Name})
	m := must(NewMatrix(ctx, p.a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), p.planOptions(16)))(t)
	defer plan.Close()
	b := inBuffer(t, ctx, p.b, 0)
	defer b.Buffer.Close()
	c := inBuffer(t, ctx, p.newC(), 0)
	defer c.Buffer.Close()

	const threads = 8
	var running, done sync.WaitGroup
	failures := make([]error, threads)
	running.Add(threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and is of no use to others
			running.Done()
			running.Wait() // so that each has a thread of its own
			failures[i] = plan.Multiply(context.Background(), p.alpha, b, p.beta, c)
		})
	}
	done.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Error(err)
	}
}
