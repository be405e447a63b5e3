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
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/timing"
)

func TestUseAfterClose(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		background := context.Background()
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		plan := must(m.Plan(background, PlanOptions{N: 8}))(t)
		other := must(m.Plan(background, PlanOptions{N: 8}))(t)
		buffer := must(NewBuffer[float32](engine, 48))(t)
		stream := must(engine.NewStream())(t)
		b := Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
		c := Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}

		closed := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s: error is %v, want ErrClosed", what, err)
			}
		}
		twice := func(close func() error) {
			t.Helper()
			if err := errors.Join(close(), close()); err != nil {
				t.Error(err)
			}
		}
		twice(plan.Close)
		closed("closed plan", plan.Multiply(background, 1, 0, Operands{B: b, C: c}))
		twice(buffer.Close)
		closed("closed buffer", buffer.Fill(context.Background(), 0))
		closed("product with a closed buffer", other.Multiply(background, 1, 0, Operands{B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: buffer}, C: c}))
		twice(stream.Close)
		closed("closed stream", stream.Wait(background))
		closed("product in a closed stream", other.Enqueue(background, stream, 1, 0, Operands{B: b, C: c}))
		if err := other.Multiply(background, 1, 0, Operands{B: b, C: c}); err != nil {
			t.Error(err)
		}

		// Parents first.
		twice(m.Close)
		closed("plan of a closed matrix", other.Multiply(background, 1, 0, Operands{B: b, C: c}))
		closed("values of a closed matrix", SetValues(context.Background(), m, make([]float32, 18)))
		_, err := m.Plan(background, PlanOptions{N: 8})
		closed("new plan of a closed matrix", err)
		later := must(NewMatrix(context.Background(), engine, small()))(t)
		twice(engine.Close)
		_, err = NewMatrix(context.Background(), engine, small())
		closed("matrix in a closed engine", err)
		_, err = NewBuffer[float32](engine, 1)
		closed("buffer in a closed engine", err)
		_, err = engine.NewStream()
		closed("stream in a closed engine", err)
		closed("matrix of a closed engine", SetValues(context.Background(), later, make([]float32, 18)))
		twice(later.Close)
		twice(other.Close)
	})
}

// What is dropped without Close is freed all the same.
func TestDroppedObjectsAreFreed(t *testing.T) {
	engine := newEngine(t, CPU)
	func() {
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
		must(NewBuffer[float32](engine, 48))(t)
		must(engine.NewStream())(t)
	}()
	for range 1000 {
		runtime.GC()
		if engine.Children() == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("objects that nobody holds were not freed")
}

func TestManyGoroutinesOnOnePlan(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		p := newProduct[BFloat16, int32](shape{rows: 192, cols: 192, n: 64, blockM: 64, blockK: 64, density: 0.6, alpha: 1, beta: 0.5, seed: 11})
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: p.n}))(t)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 5 {
					c := p.newC()
					if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
						t.Error(err)
						return
					}
					if report, err := check.Product(engine.Library(), p.a, check.Args{Alpha: p.alpha, Beta: p.beta, B: p.b, C0: p.c0, C: c,
						UnitRoundoff: plan.Info().UnitRoundoff, Threads: 1}); err != nil {
						t.Errorf("%v: %+v", err, report)
					}
				}
			})
		}
		group.Wait()
	})
}

// A product sees one set of values or the other, whole.
func TestNewValuesBetweenProducts(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		const size, n = 128, 64
		p := newProduct[float32, int32](shape{rows: size, cols: size, n: n, blockM: 64, blockK: 64, density: 2, alpha: 1, seed: 1})
		elements := len(p.a.Values)
		constant := func(v float32) []float32 { return slices.Repeat([]float32{v}, elements) }
		p.a.Values = nil
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: n}))(t)
		b := Dense[float32]{Rows: size, Cols: n, Data: slices.Repeat([]float32{1}, size*n)}
		c := func() Dense[float32] { return Dense[float32]{Rows: size, Cols: n, Data: make([]float32, size*n)} }
		wantFault(t, plan.Multiply(context.Background(), 1, 0, Operands{B: b, C: c()}), ErrNullPointer, "values")

		if err := SetValues(context.Background(), m, constant(1)); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 20 {
					c := c()
					if err := plan.Multiply(context.Background(), 1, 0, Operands{B: b, C: c}); err != nil {
						t.Error(err)
						return
					}
					for blockRow := range size / 64 {
						rows := c.Data[blockRow*64*n : (blockRow+1)*64*n]
						terms := float32(64 * (p.a.RowPtr[blockRow+1] - p.a.RowPtr[blockRow]))
						for _, v := range rows {
							if v != rows[0] || v != terms && v != 3*terms {
								t.Errorf("C has %g and %g in a block row of %g terms", v, rows[0], terms)
								return
							}
						}
					}
				}
			})
		}
		for i := range 20 {
			if err := SetValues(context.Background(), m, constant(float32(1+2*(i%2)))); err != nil {
				t.Error(err)
			}
			runtime.GC() // what the library refers to must have been kept
		}
		group.Wait()
	})
}

func TestCancelledBeforeLaunch(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
		stopped, stop := context.WithCancel(context.Background())
		stop()
		b := Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
		c := Dense[float32]{Rows: 4, Cols: 8, Data: slices.Repeat([]float32{7}, 32)}
		if err := plan.Multiply(stopped, 1, 0, Operands{B: b, C: c}); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		if slices.ContainsFunc(c.Data, func(v float32) bool { return v != 7 }) {
			t.Error("C was written")
		}
		if _, err := m.Plan(stopped, PlanOptions{N: 8}); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		if _, err := timing.Products(stopped, plan, timing.Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
	})
}

// More products than anyone would wait for are given up on when the context ends.
func TestCancelledTiming(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
		b, c := must(NewBuffer[float32](engine, 48))(t), must(NewBuffer[float32](engine, 32))(t)
		if err := b.Fill(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		ending, stop := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer stop()
		operands := []Operands{{B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: b}, C: DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: c}}}
		times, err := timing.Products(ending, plan, timing.Options{Alpha: 1, Operands: operands, Repeats: 1 << 30})
		if !errors.Is(err, context.DeadlineExceeded) || times != nil {
			t.Errorf("%d times, error %v", len(times), err)
		}
	})
}

// A product that is given up on leaves C in host memory alone or, where it was done first, finished; and whatever it
// used can be closed at once.
func TestCancelledInFlight(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		p := newProduct[BFloat16, int32](shape{rows: 2048, cols: 1024, n: 512, blockM: 64, blockK: 64, density: 0.1, alpha: 1, seed: 2})
		want, _ := p.run(t, engine, false)
		givenUp := 0
		for range 20 {
			m := must(NewMatrix(context.Background(), engine, p.a))(t)
			plan := must(m.Plan(context.Background(), PlanOptions{N: p.n}))(t)
			buffer := must(NewBuffer[BFloat16](engine, len(p.b.Data)))(t)
			if err := buffer.Write(context.Background(), p.b.Data); err != nil {
				t.Fatal(err)
			}
			b := DeviceDense[BFloat16]{Rows: p.b.Rows, Cols: p.b.Cols, Buffer: buffer}
			c := p.newC()
			stopping, stop := context.WithCancel(context.Background())
			time.AfterFunc(50*time.Microsecond, stop)
			err := plan.Multiply(stopping, p.alpha, p.beta, Operands{B: b, C: c})
			if err != nil {
				givenUp++
			}
			switch {
			case err == nil && !slices.Equal(c.Data, want.Data):
				t.Fatal("a finished product is not what it is without a context to be cancelled")
			case err != nil && (!errors.Is(err, context.Canceled) || !slices.Equal(c.Data, p.c0.Data)):
				t.Fatalf("error %v; C was written: %v", err, !slices.Equal(c.Data, p.c0.Data))
			}
			if err := errors.Join(buffer.Close(), m.Close(), plan.Close()); err != nil {
				t.Fatal(err)
			}
			stop()
		}
		t.Logf("%d of 20 products were given up on", givenUp)
	})
}
