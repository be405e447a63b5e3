// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
)

// deferred is a stream whose work is waited for by nobody but this package: on the CPU, whose work is done when it is
// enqueued, what is tested is who holds what for how long.
func deferred(t *testing.T, engine *Engine) *Stream {
	s := must(engine.NewStream())(t)
	if engine.Info().Backend == CPU {
		s.Defer()
	}
	return s
}

// Copies and products in one stream, one after the other, and a single wait.
func TestEnqueue(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		ctx := t.Context()
		p := newProduct[BFloat16, int32](shape{rows: 256, cols: 192, n: 64, blockM: 64, blockK: 64, density: 0.7, alpha: 1, beta: 0.5, seed: 4})
		m := must(NewMatrix(ctx, engine, p.a))(t)
		plan := must(m.Plan(ctx, PlanOptions{N: p.n, Alignment: 2}))(t)
		stream := must(engine.NewStream())(t)
		b, c := must(NewBuffer[BFloat16](engine, len(p.b.Data)))(t), must(NewBuffer[BFloat16](engine, len(p.c0.Data)))(t)
		o := Operands{
			B: DeviceDense[BFloat16]{Rows: p.b.Rows, Cols: p.n, Stride: p.b.Stride, Buffer: b},
			C: DeviceDense[BFloat16]{Rows: p.a.Rows, Cols: p.n, Stride: p.c0.Stride, Buffer: c},
		}
		got := p.newC()
		clear(got.Data)
		if err := errors.Join(b.WriteAsync(stream, p.b.Data), c.WriteAsync(stream, p.c0.Data),
			plan.Enqueue(ctx, stream, p.alpha, p.beta, o), c.ReadAsync(stream, got.Data), stream.Wait(ctx)); err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), got)
		wantFault(t, c.ReadAsync(stream, make([]BFloat16, c.Len()+1)), ErrBadSize, "a buffer of")
		if engine.Info().Backend == CUDA {
			o.B = p.b
			wantFault(t, plan.Enqueue(ctx, stream, 1, 0, o), ErrWrongMemory, "B is in host memory")
		}
		ended, end := context.WithCancel(ctx)
		end()
		if err := plan.Enqueue(ended, stream, 1, 0, o); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
		if err := stream.Wait(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}

// A stream uses what was enqueued until somebody waits for it, whoever that is; then it holds nothing.
func TestStreamHoldsWhatItUses(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		ctx := context.Background()
		values := slices.Repeat([]float32{1}, 18)
		type things struct {
			m      *Matrix
			plan   *Plan
			stream *Stream
			b, c   *DeviceBuffer[float32]
		}
		for name, wait := range map[string]func(things) error{
			"Stream.Wait":  func(x things) error { return x.stream.Wait(ctx) },
			"Stream.Close": func(x things) error { return x.stream.Close() },
			"Plan.Close":   func(x things) error { return x.plan.Close() },
			"Matrix.Close": func(x things) error { return x.m.Close() },
			"buffer.Close": func(x things) error { return x.b.Close() },
			"SetValues":    func(x things) error { return SetValues(ctx, x.m, values) },
			"dropped":      func(x things) error { return nil },
		} {
			t.Run(name, func(t *testing.T) {
				before := engine.Children()
				func() {
					x := things{stream: deferred(t, engine)}
					a := small()
					a.Values = values
					x.m = must(NewMatrix(ctx, engine, a))(t)
					x.plan = must(x.m.Plan(ctx, PlanOptions{N: 8}))(t)
					x.b, x.c = must(NewBuffer[float32](engine, 48))(t), must(NewBuffer[float32](engine, 32))(t)
					for range 5 {
						if err := errors.Join(x.b.WriteAsync(x.stream, make([]float32, 48)), x.plan.Enqueue(ctx, x.stream, 1, 0, Operands{
							B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: x.b}, C: DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: x.c}})); err != nil {
							t.Fatal(err)
						}
					}
					if held := x.stream.Held(); held != 5 { // plan, values, both buffers and the stream itself
						t.Errorf("the stream holds %d things before, want 5", held)
					}
					finished := make(chan error, 1)
					go func() { finished <- wait(x) }()
					select {
					case err := <-finished:
						if err != nil {
							t.Fatal(err)
						}
					case <-time.After(30 * time.Second): // without an end: what it waits for is held
						t.Fatal("nothing releases what the stream uses")
					}
					if held := x.stream.Held(); held != 0 && name != "dropped" {
						t.Errorf("the stream holds %d things afterwards", held)
					}
				}()
				for range 1000 { // all of it is freed
					if runtime.GC(); engine.Children() == before {
						return
					}
					time.Sleep(time.Millisecond)
				}
				t.Errorf("%d things of the engine are left", engine.Children()-before)
			})
		}
	})
}

// Enqueuing, new values and closing, all at once.
func TestEnqueueBesideWritersAndClosers(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		m := must(NewMatrix(ctx, engine, small()))(t)
		b := must(NewBuffer[float32](engine, 48))(t)
		if err := b.Fill(ctx, 0); err != nil {
			t.Fatal(err)
		}
		var workers, writers sync.WaitGroup
		for range 3 {
			stream := deferred(t, engine)
			workers.Go(func() {
				for range 100 {
					plan, err := m.Plan(ctx, PlanOptions{N: 8})
					if err != nil {
						t.Error(err)
						return
					}
					c, err := NewBuffer[float32](engine, 32)
					for range 10 {
						err = errors.Join(err, plan.Enqueue(ctx, stream, 1, 0, Operands{
							B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: b}, C: DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: c}}))
					}
					if err = errors.Join(err, plan.Close(), c.Close()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		writing, end := context.WithCancel(ctx)
		for range 2 {
			writers.Go(func() {
				values := make([]float32, 18)
				for writing.Err() == nil {
					if err := SetValues(writing, m, values); err != nil && !errors.Is(err, context.Canceled) {
						t.Error(err)
						return
					}
				}
			})
		}
		workers.Wait()
		end()
		writers.Wait()
	})
}
