// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// collect frees what nobody holds: it returns when a buffer that was dropped after all else is closed.
func collect(t *testing.T, ctx *Engine) {
	t.Helper()
	dropped := func() *handle { return must(NewBuffer[float32](ctx, 1))(t).handle }()
	for range 1000 {
		runtime.GC()
		dropped.mu.Lock()
		closed := dropped.closed
		dropped.mu.Unlock()
		if closed {
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
	ctx := newContext(t, CUDA)
	p := newProduct[BFloat16, int32](shape{rows: 256, cols: 192, n: 64, blockM: 64, blockK: 64, density: 0.7, alpha: 1, beta: 1, seed: 4})
	forgotten := func(values []BFloat16) *DeviceBuffer[BFloat16] {
		buffer := must(NewBuffer[BFloat16](ctx, len(values)))(t)
		if err := buffer.Write(values); err != nil {
			t.Fatal(err)
		}
		return buffer
	}
	m := must(NewDeviceMatrix(ctx, DeviceBSR[BFloat16, int32]{Rows: p.a.Rows, Cols: p.a.Cols, BlockM: p.a.BlockM, BlockK: p.a.BlockK,
		RowPtr: upload(t, ctx, p.a.RowPtr), ColIdx: upload(t, ctx, p.a.ColIdx), Values: forgotten(p.a.Values)}))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: p.n}))(t)
	for range 2 {
		collect(t, ctx)
		c := p.newC()
		if err := plan.Multiply(context.Background(), p.alpha, p.b, p.beta, c); err != nil {
			t.Fatal(err)
		}
		p.verify(t, ctx, plan.Info(), c)
		for i := range p.a.Values {
			p.a.Values[i] = FromFloat32[BFloat16](2 * p.a.Values[i].Float32())
		}
		if err := m.SetDeviceValues(context.Background(), forgotten(p.a.Values)); err != nil {
			t.Fatal(err)
		}
	}
}

// The same without a GPU, as far as it goes: the buffer lives as long as it is the matrix's, and no longer.
func TestValuesAreHeldAndLetGo(t *testing.T) {
	ctx := newContext(t, CPU)
	m := must(NewMatrix(ctx, small()))(t)
	give := func() *handle {
		buffer := must(NewBuffer[float32](ctx, 18))(t)
		m.values.replace(runtime.Pinner{}, buffer)
		return buffer.handle
	}
	first := give()
	collect(t, ctx)
	if err := first.acquire(); err != nil {
		t.Fatalf("values in use: %v", err)
	}
	first.release()
	give()
	collect(t, ctx)
	if err := first.acquire(); !errors.Is(err, ErrClosed) {
		t.Errorf("values that were replaced: error is %v, want ErrClosed", err)
	}
	runtime.KeepAlive(m)
}

func TestDeviceValuesFaults(t *testing.T) {
	ctx, other := newContext(t, CPU), newContext(t, CPU)
	m := must(NewMatrix(ctx, small()))(t)
	wantFault(t, m.SetDeviceValues(context.Background(), nil), ErrNullPointer, "Values is nil")
	wantFault(t, m.SetDeviceValues(context.Background(), must(NewBuffer[float32](other, 18))(t)), ErrBadArgument, "Values is a buffer of another context")

	index := func(ctx *Engine, n int) *DeviceBuffer[int64] { return must(NewBuffer[int64](ctx, n))(t) }
	a := DeviceBSR[float32, int64]{Rows: 4, Cols: 6, BlockM: 2, BlockK: 3, RowPtr: index(ctx, 3), ColIdx: index(ctx, 3),
		Values: must(NewBuffer[float32](ctx, 18))(t)}
	for _, fault := range []struct {
		spoil    func(*DeviceBSR[float32, int64])
		status   Status
		speaksOf string
	}{
		{func(a *DeviceBSR[float32, int64]) { a.RowPtr = nil }, ErrNullPointer, "RowPtr or ColIdx is nil"},
		{func(a *DeviceBSR[float32, int64]) { a.RowPtr = index(other, 3) }, ErrBadArgument, "RowPtr is a buffer of another context"},
		{func(a *DeviceBSR[float32, int64]) { a.ColIdx = index(other, 3) }, ErrBadArgument, "ColIdx is a buffer of another context"},
		{func(a *DeviceBSR[float32, int64]) { a.Values = must(NewBuffer[float32](other, 18))(t) }, ErrBadArgument, "Values is a buffer of another context"},
	} {
		spoilt := a
		fault.spoil(&spoilt)
		_, err := NewDeviceMatrix(ctx, spoilt)
		wantFault(t, err, fault.status, fault.speaksOf)
	}
}

func TestNilOperands(t *testing.T) {
	ctx := newContext(t, CPU)
	m := must(NewMatrix(ctx, small()))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
	b := &Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
	c := &Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}
	if err := plan.Multiply(context.Background(), 1, b, 0, c); err != nil {
		t.Error(err)
	}
	var none *Dense[float32]
	var noneOnDevice *DeviceDense[float32]
	for _, fault := range []struct {
		b, c     Operand[float32]
		speaksOf string
	}{
		{nil, c, "B is nil"}, {b, nil, "C is nil"}, {none, c, "B is nil"}, {b, none, "C is nil"}, {b, noneOnDevice, "C is nil"},
	} {
		wantFault(t, plan.Multiply(context.Background(), 1, fault.b, 0, fault.c), ErrNullPointer, fault.speaksOf)
		_, err := plan.Time(context.Background(), TimeOptions[float32]{Repeats: 1, Operands: []Operands[float32]{{fault.b, fault.c}}})
		wantFault(t, err, ErrNullPointer, fault.speaksOf)
	}
}

// While the values are being changed, whatever multiplies waits, and gives up where its context ends.
func TestProductWaitsForValues(t *testing.T) {
	ctx := newContext(t, CPU)
	a := small()
	a.Values = slices.Repeat([]float32{1}, 18)
	m := must(NewMatrix(ctx, a))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
	b := Dense[float32]{Rows: 6, Cols: 8, Data: slices.Repeat([]float32{1}, 48)}
	c := Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}
	operands := []Operands[float32]{{b, c}}

	if err := m.values.beginChange(context.Background()); err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context) error{
		"Multiply": func(ctx context.Context) error { return plan.Multiply(ctx, 1, b, 0, c) },
		"Time": func(ctx context.Context) error {
			_, err := plan.Time(ctx, TimeOptions[float32]{Operands: operands, Repeats: 1})
			return err
		},
		"TimeInTurn": func(ctx context.Context) error {
			_, err := TimeInTurn(ctx, []*Plan[float32]{plan}, TurnOptions[float32]{TimeOptions: TimeOptions[float32]{Operands: operands, Repeats: 1}})
			return err
		},
		"SetValues": func(ctx context.Context) error { return m.SetValues(ctx, a.Values) },
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
	go func() { finished <- plan.Multiply(waiting, 1, b, 0, c) }()
	<-waiting.waitedFor
	if c.Data[0] != 0 {
		t.Error("a product ran while the values were being changed")
	}
	m.values.endChange()
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
	ctx := newContext(t, CPU)
	first, second := must(NewMatrix(ctx, small()))(t), must(NewMatrix(ctx, small()))(t)
	plan := func(m *Matrix[float32]) *Plan[float32] {
		return must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
	}
	p, q, r := plan(first), plan(first), plan(second)
	for name, lists := range map[string][][]*Plan[float32]{
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
					options := TurnOptions[float32]{TimeOptions: TimeOptions[float32]{Operands: []Operands[float32]{{b, c}}, Repeats: 2}}
					for i := range 3000 {
						if _, err := TimeInTurn(ctx, list, options); err != nil {
							t.Errorf("call %d: %v", i, err)
							return
						}
					}
				})
			}
			for _, m := range []*Matrix[float32]{first, second} {
				writers.Go(func() {
					values := make([]float32, 18)
					for calling.Err() == nil {
						if err := m.SetValues(calling, values); err != nil && !errors.Is(err, context.Canceled) {
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
