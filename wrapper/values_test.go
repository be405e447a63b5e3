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
	"github.com/sparsek/sparsek/wrapper/timing"
)

// collect frees what nobody holds: it returns when a buffer that was dropped after all else is closed.
func collect(t *testing.T, engine *Engine) {
	t.Helper()
	closed := func() func() bool { return must(NewBuffer[float32](engine, 1))(t).Closed() }()
	for range 1000 {
		runtime.GC()
		if closed() {
			runtime.GC()
			time.Sleep(time.Millisecond) // cleanups of one cycle run in any order
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("nothing is freed")
}

// Whoever gives values in device memory may forget the buffer: the matrix has it.
func TestMatrixKeepsDeviceValues(t *testing.T) {
	engine := newEngine(t, CUDA)
	p := newProduct[BFloat16, int32](shape{rows: 256, cols: 192, n: 64, blockM: 64, blockK: 64, density: 0.7, alpha: 1, beta: 1, seed: 4})
	forgotten := func(values []BFloat16) *DeviceBuffer[BFloat16] {
		buffer := must(NewBuffer[BFloat16](engine, len(values)))(t)
		if err := buffer.Write(context.Background(), values); err != nil {
			t.Fatal(err)
		}
		return buffer
	}
	m := must(NewDeviceMatrix(context.Background(), engine, DeviceBSR[BFloat16, int32]{Rows: p.a.Rows, Cols: p.a.Cols, BlockM: p.a.BlockM, BlockK: p.a.BlockK,
		RowPtr: upload(t, engine, p.a.RowPtr), ColIdx: upload(t, engine, p.a.ColIdx), Values: forgotten(p.a.Values)}))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: p.n}))(t)
	for range 2 {
		collect(t, engine)
		c := p.newC()
		if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), c)
		for i := range p.a.Values {
			p.a.Values[i] = FromFloat32[BFloat16](2 * p.a.Values[i].Float32())
		}
		if err := SetDeviceValues(context.Background(), m, forgotten(p.a.Values)); err != nil {
			t.Fatal(err)
		}
	}
}

// The same without a GPU, as far as it goes: the buffer lives as long as it is the matrix's, and no longer.
func TestValuesAreHeldAndLetGo(t *testing.T) {
	engine := newEngine(t, CPU)
	m := must(NewMatrix(context.Background(), engine, small()))(t)
	give := func() (closed func() bool) {
		buffer := must(NewBuffer[float32](engine, 18))(t)
		HoldValues(m, buffer)
		return buffer.Closed()
	}
	first := give()
	collect(t, engine)
	if first() {
		t.Fatal("values in use are closed")
	}
	give()
	collect(t, engine)
	if !first() {
		t.Error("values that were replaced are still there")
	}
	runtime.KeepAlive(m)
}

func TestDeviceValuesFaults(t *testing.T) {
	engine, other := newEngine(t, CPU), newEngine(t, CPU)
	m := must(NewMatrix(context.Background(), engine, small()))(t)
	wantFault(t, SetDeviceValues[float32](context.Background(), m, nil), ErrNullPointer, "Values is nil")
	wantFault(t, SetDeviceValues(context.Background(), m, must(NewBuffer[float32](other, 18))(t)), ErrBadArgument, "Values is a buffer of another engine")

	index := func(engine *Engine, n int) *DeviceBuffer[int64] { return must(NewBuffer[int64](engine, n))(t) }
	a := DeviceBSR[float32, int64]{Rows: 4, Cols: 6, BlockM: 2, BlockK: 3, RowPtr: index(engine, 3), ColIdx: index(engine, 3),
		Values: must(NewBuffer[float32](engine, 18))(t)}
	for _, fault := range []struct {
		spoil    func(*DeviceBSR[float32, int64])
		status   Status
		speaksOf string
	}{
		{func(a *DeviceBSR[float32, int64]) { a.RowPtr = nil }, ErrNullPointer, "RowPtr or ColIdx is nil"},
		{func(a *DeviceBSR[float32, int64]) { a.RowPtr = index(other, 3) }, ErrBadArgument, "RowPtr is a buffer of another engine"},
		{func(a *DeviceBSR[float32, int64]) { a.ColIdx = index(other, 3) }, ErrBadArgument, "ColIdx is a buffer of another engine"},
		{func(a *DeviceBSR[float32, int64]) { a.Values = must(NewBuffer[float32](other, 18))(t) }, ErrBadArgument, "Values is a buffer of another engine"},
	} {
		spoilt := a
		fault.spoil(&spoilt)
		_, err := NewDeviceMatrix(context.Background(), engine, spoilt)
		wantFault(t, err, fault.status, fault.speaksOf)
	}
}

func TestNilOperands(t *testing.T) {
	engine := newEngine(t, CPU)
	m := must(NewMatrix(context.Background(), engine, small()))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
	b := &Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
	c := &Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}
	if err := plan.Multiply(context.Background(), 1, 0, Operands{B: b, C: c}); err != nil {
		t.Error(err)
	}
	var none *Dense[float32]
	var noneOnDevice *DeviceDense[float32]
	for _, fault := range []struct {
		b, c     Operand
		speaksOf string
	}{
		{nil, c, "B is nil"}, {b, nil, "C is nil"}, {none, c, "B is nil"}, {b, none, "C is nil"}, {b, noneOnDevice, "C is nil"},
	} {
		wantFault(t, plan.Multiply(context.Background(), 1, 0, Operands{B: fault.b, C: fault.c}), ErrNullPointer, fault.speaksOf)
		_, err := timing.Products(context.Background(), plan, timing.Options{Repeats: 1, Operands: []Operands{{B: fault.b, C: fault.c}}})
		wantFault(t, err, ErrNullPointer, fault.speaksOf)
	}
}

// While the values are being changed, whatever multiplies waits, and gives up where its context ends.
func TestProductWaitsForValues(t *testing.T) {
	engine := newEngine(t, CPU)
	a := small()
	a.Values = slices.Repeat([]float32{1}, 18)
	m := must(NewMatrix(context.Background(), engine, a))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
	b := Dense[float32]{Rows: 6, Cols: 8, Data: slices.Repeat([]float32{1}, 48)}
	c := Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}
	operands := []Operands{{B: b, C: c}}

	if err := m.BeginChange(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context) error{
		"Multiply": func(ctx context.Context) error { return plan.Multiply(ctx, 1, 0, Operands{B: b, C: c}) },
		"Time": func(ctx context.Context) error {
			_, err := timing.Products(ctx, plan, timing.Options{Operands: operands, Repeats: 1})
			return err
		},
		"TimeInTurn": func(ctx context.Context) error {
			_, err := timing.InTurn(ctx, []*Plan{plan}, timing.InTurnOptions{Options: timing.Options{Operands: operands, Repeats: 1}})
			return err
		},
		"SetValues": func(ctx context.Context) error { return SetValues(ctx, m, a.Values) },
	} {
		stoppable := newStoppable()
		go func() {
			<-stoppable.waitedFor // it has come to where it waits for its end
			stoppable.stop()
		}()
		if err := call(stoppable); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	finished := make(chan error)
	waiting := newStoppable()
	go func() { finished <- plan.Multiply(waiting, 1, 0, Operands{B: b, C: c}) }()
	<-waiting.waitedFor
	if c.Data[0] != 0 {
		t.Error("a product ran while the values were being changed")
	}
	m.EndChange()
	if err := <-finished; err != nil || c.Data[0] != 3 {
		t.Errorf("C[0, 0] = %g, error %v", c.Data[0], err)
	}
	if err := m.Close(); err != nil { // nothing that was given up on is in use still
		t.Error(err)
	}
}

// stoppable is a context that says when its end is waited for.
type stoppable struct {
	context.Context
	stop      context.CancelFunc
	once      sync.Once
	waitedFor chan struct{}
}

func newStoppable() *stoppable {
	ctx, stop := context.WithCancel(context.Background())
	return &stoppable{Context: ctx, stop: stop, waitedFor: make(chan struct{})}
}

func (s *stoppable) Done() <-chan struct{} {
	s.once.Do(func() { close(s.waitedFor) })
	return s.Context.Done()
}

// Calls on several plans, writers between them, and no order that the callers keep: nothing may wait for good.
func TestNoDeadlockBetweenPlansAndValues(t *testing.T) {
	engine := newEngine(t, CPU)
	first, second := must(NewMatrix(context.Background(), engine, small()))(t), must(NewMatrix(context.Background(), engine, small()))(t)
	plan := func(m *Matrix) *Plan {
		return must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
	}
	p, q, r := plan(first), plan(first), plan(second)
	for name, lists := range map[string][][]*Plan{
		"two plans of one matrix":       {{p, q}, {p, q}},
		"two matrices in either order":  {{p, r}, {r, p}},
		"three plans, the second apart": {{p, r, q}, {r, q, p}},
	} {
		t.Run(name, func(t *testing.T) {
			// Long before go test gives up. With calls that wait for good, all but a few of these contexts end.
			ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
			defer stop()
			calling, stopWriters := context.WithCancel(ctx)
			var callers, writers sync.WaitGroup
			for _, list := range lists {
				callers.Go(func() {
					b := Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
					c := Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}
					options := timing.InTurnOptions{Options: timing.Options{Operands: []Operands{{B: b, C: c}}, Repeats: 2}}
					for i := range 3000 {
						if _, err := timing.InTurn(ctx, list, options); err != nil {
							t.Errorf("call %d: %v", i, err)
							return
						}
					}
				})
			}
			for _, m := range []*Matrix{first, second} {
				writers.Go(func() {
					values := make([]float32, 18)
					for calling.Err() == nil {
						if err := SetValues(calling, m, values); err != nil && !errors.Is(err, context.Canceled) {
							t.Error(err)
							return
						}
					}
				})
			}
			callers.Wait()
			stopWriters()
			writers.Wait()
		})
	}
}
