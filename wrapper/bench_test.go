// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// BenchmarkEnqueue compares a product of 8 x 8 x 1 that is called from Go with the same called in a loop of C. What is
// reported besides the time of Go's call is that of C's, and the difference: what Go costs. Each is the mean of the fastest
// of many batches, so that a busy machine adds little.
func BenchmarkEnqueue(b *testing.B) {
	for _, backend := range []Backend{CPU, CUDA} {
		b.Run(backend.String(), func(b *testing.B) {
			engine := newEngine(b, backend)
			ctx := b.Context()
			type element = BFloat16 // a GPU's fastest kernels take it
			a := BSR[element, int32]{Rows: 8, Cols: 8, BlockM: 8, BlockK: 8, RowPtr: []int32{0, 1}, ColIdx: []int32{0}, Values: make([]element, 64)}
			plan := must(must(NewMatrix(ctx, engine, a))(b).Plan(ctx, PlanOptions{N: 1, Alignment: 2}))(b)
			in, out := must(NewBuffer[element](engine, 8))(b), must(NewBuffer[element](engine, 8))(b)
			stream := must(engine.NewStream())(b)
			o := Operands{B: DeviceDense[element]{Rows: 8, Cols: 1, Buffer: in}, C: DeviceDense[element]{Rows: 8, Cols: 1, Buffer: out}}
			if err := in.Fill(ctx, 0); err != nil {
				b.Fatal(err)
			}
			// A GPU's queue has room for about a thousand launches: more would be timed waiting.
			const batch = 500
			inGo := func() (time.Duration, error) {
				begun := time.Now()
				for range batch {
					if err := plan.Enqueue(ctx, stream, 1, 0, o); err != nil {
						return 0, err
					}
				}
				return time.Since(begun), stream.Wait(ctx)
			}
			products := native.Products{Plan: plan.Native(), Alpha: 1, B: native.Addresses{uintptr(in.Pointer())},
				C: native.Addresses{uintptr(out.Pointer())}, Bias: native.Addresses{0}, X: native.Addresses{0}, Stream: stream.Handle(), Repeats: batch}
			inC := func() (time.Duration, error) {
				elapsed, err := engine.Library().Native().MultiplyLoop(products)
				if err != nil {
					return 0, err
				}
				return elapsed, stream.Wait(ctx)
			}
			goTime, cTime := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64) // of the fastest batches
			for b.Loop() {
				for _, one := range []struct {
					run     func() (time.Duration, error)
					fastest *time.Duration
				}{{inGo, &goTime}, {inC, &cTime}} {
					took, err := one.run()
					if err != nil {
						b.Fatal(err)
					}
					*one.fastest = min(*one.fastest, took)
				}
			}
			each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / batch }
			b.ReportMetric(0, "ns/op") // of two batches, which says nothing
			b.ReportMetric(each(goTime), "ns/call-Go")
			b.ReportMetric(each(cTime), "ns/call-C")
			b.ReportMetric(each(goTime)-each(cTime), "ns/difference")
		})
	}
}

// BenchmarkEnqueueOfKernels is the host's time of a product by each kernel that serves it: of 64 x 64 blocks, 12.5 %, of the
// types and sizes that the kernels are for. Ten are enqueued before their stream is waited for, in a loop of C. It reports the
// median of many such tens.
func BenchmarkEnqueueOfKernels(b *testing.B) {
	engine := newEngine(b, CUDA)
	b.Run("bf16", func(b *testing.B) { enqueueByKernels[BFloat16](b, engine, 4096, 4096) })
	b.Run("bf16-16-columns", func(b *testing.B) { enqueueByKernels[BFloat16](b, engine, 4096, 16) })
	b.Run("fp32", func(b *testing.B) { enqueueByKernels[float32](b, engine, 2048, 2048) })
	b.Run("fp64", func(b *testing.B) { enqueueByKernels[float64](b, engine, 2048, 512) })
}

func enqueueByKernels[T Element](b *testing.B, engine *Engine, extent, n int) {
	ctx := b.Context()
	p := newProduct[T, int32](shape{rows: extent, cols: extent, n: n, blockM: 64, blockK: 64, density: 0.125, alpha: 1, seed: 1})
	m := must(NewMatrix(ctx, engine, p.a))(b)
	in, out := must(NewBuffer[T](engine, len(p.b.Data)))(b), must(NewBuffer[T](engine, len(p.c0.Data)))(b)
	if err := in.Write(ctx, p.b.Data); err != nil {
		b.Fatal(err)
	}
	stream := must(engine.NewStream())(b)
	values := must(NewBuffer[T](engine, len(p.a.Values)))(b)
	pattern := p.a
	pattern.Values = nil
	onDevice := must(NewMatrix(ctx, engine, pattern))(b)
	if err := errors.Join(values.Write(ctx, p.a.Values), SetDeviceValues(ctx, onDevice, values)); err != nil {
		b.Fatal(err)
	}
	for _, kernel := range must(engine.Library().Kernels())(b) {
		plan, err := m.Plan(ctx, PlanOptions{N: p.n, Kernel: kernel.Name})
		if err != nil {
			continue // it serves other products
		}
		enqueue := func(b *testing.B, plan *Plan) {
			const batch = 10
			products := native.Products{Plan: plan.Native(), Alpha: 1, B: native.Addresses{uintptr(in.Pointer())},
				C: native.Addresses{uintptr(out.Pointer())}, Bias: native.Addresses{0}, X: native.Addresses{0}, Stream: stream.Handle(), Repeats: batch}
			var times []time.Duration
			for b.Loop() {
				elapsed, err := engine.Library().Native().MultiplyLoop(products)
				if err := errors.Join(err, stream.Wait(ctx)); err != nil {
					b.Fatal(err)
				}
				times = append(times, elapsed)
			}
			slices.Sort(times)
			b.ReportMetric(0, "ns/op") // which has the wait for the products in it
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/batch, "ns/call")
		}
		b.Run(kernel.Name, func(b *testing.B) { enqueue(b, plan) })
		if plan.Info().KeptBytes > 0 {
			packing := must(onDevice.Plan(ctx, PlanOptions{N: p.n, Kernel: kernel.Name}))(b)
			b.Run(kernel.Name+"-values-on-device", func(b *testing.B) { enqueue(b, packing) }) // which each product packs
		}
	}
}
