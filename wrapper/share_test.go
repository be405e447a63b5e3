// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"unsafe"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// Memory and a stream of another library: it writes B, the product runs in its stream, and it reads C.
func TestShareWithAnotherLibrary(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		ctx := t.Context()
		other := must(foreign.Open(engine.Info().Backend == CUDA, engine.Info().Device))(t)
		defer other.Close()
		a := small()
		a.Values = slices.Repeat([]float32{1}, 18)
		plan := must(must(NewMatrix(ctx, engine, a))(t).Plan(ctx, PlanOptions{N: 8}))(t)
		memoryB, memoryC := must(other.Alloc(48*4))(t), must(other.Alloc(32*4))(t)
		defer other.Free(memoryB)
		defer other.Free(memoryC)
		stream := must(engine.StreamAt(other.Stream()))(t)
		b, c := must(BufferAt[float32](engine, memoryB, 48))(t), must(BufferAt[float32](engine, memoryC, 32))(t)
		if b.Pointer() != memoryB || b.Len() != 48 || stream.Handle() != other.Stream() {
			t.Errorf("buffer of %d elements at %p, want 48 at %p; stream %#x, want %#x", b.Len(), b.Pointer(), memoryB, stream.Handle(), other.Stream())
		}
		for round := range 3 {
			if err := other.Write(memoryB, slices.Repeat([]float32{float32(round)}, 48)); err != nil {
				t.Fatal(err)
			}
			o := Operands{B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: b}, C: DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: c}}
			if err := plan.Enqueue(ctx, stream, 1, 0, o); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, 32)
			if err := other.Read(got, memoryC); err != nil { // behind the product: it is the same stream
				t.Fatal(err)
			}
			if got[0] != float32(3*round) || got[31] != float32(6*round) {
				t.Errorf("round %d: C is %v", round, got)
			}
		}
		if err := errors.Join(stream.Close(), b.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		// Nothing of it was freed or destroyed.
		if err := other.Write(memoryC, make([]float32, 32)); err != nil {
			t.Errorf("the other library's memory after Close: %v", err)
		}
	})
}

// sharedProduct multiplies in memory of another library's, which holds B, the values of A and C. It gives C: 3 or 6 in each
// element, or an error.
func sharedProduct(t *testing.T, engine *Engine, values, b, c unsafe.Pointer, other *foreign.Library) ([]float32, error) {
	t.Helper()
	ctx := t.Context()
	matrix := must(NewMatrix(ctx, engine, small()))(t)
	defer matrix.Close()
	if err := errors.Join(other.Write(values, slices.Repeat([]float32{1}, 18)), other.Write(b, slices.Repeat([]float32{1}, 48))); err != nil {
		t.Fatal(err)
	}
	if err := SetDeviceValues(ctx, matrix, must(BufferAt[float32](engine, values, 18))(t)); err != nil {
		return nil, err
	}
	plan := must(matrix.Plan(ctx, PlanOptions{N: 8}))(t)
	defer plan.Close()
	if err := plan.Multiply(ctx, 1, 0, Operands{
		B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: must(BufferAt[float32](engine, b, 48))(t)},
		C: DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: must(BufferAt[float32](engine, c, 32))(t)},
	}); err != nil {
		return nil, err
	}
	got := make([]float32, 32)
	return got, other.Read(got, c)
}

// Memory that is not the GPU's own, but that it can use: managed, pinned and another GPU's.
func TestMemoryThatAGPUCanUse(t *testing.T) {
	engine := newEngine(t, CUDA)
	own := must(foreign.Open(true, engine.Info().Device))(t)
	defer own.Close()
	for name, alloc := range map[string]func(int) (unsafe.Pointer, error){"managed": own.AllocManaged, "pinned": own.AllocPinned} {
		got, err := sharedProduct(t, engine, must(alloc(72))(t), must(alloc(192))(t), must(alloc(128))(t), own)
		if err != nil || got[0] != 3 || got[31] != 6 {
			t.Errorf("%s memory: %v, %v", name, got, err)
		}
	}
	t.Run("of another GPU", func(t *testing.T) {
		devices := must(engine.Library().Devices())(t)
		if len(devices) < 2 {
			t.Skip("skipped: there is one GPU")
		}
		peer := must(foreign.Open(true, 1-min(1, engine.Info().Device)))(t)
		defer peer.Close()
		values, b, c := must(peer.Alloc(72))(t), must(peer.Alloc(192))(t), must(peer.Alloc(128))(t)
		_, err := sharedProduct(t, engine, values, b, c, peer)
		wantFault(t, err, ErrWrongMemory, "which device 0 may not use: enable peer access")
		if err := own.EnablePeer(peer); err != nil {
			t.Skipf("skipped: %v", err)
		}
		got, err := sharedProduct(t, engine, values, b, c, peer)
		if err != nil || got[0] != 3 || got[31] != 6 {
			t.Errorf("%v, %v", got, err)
		}
	})
}

// And the other way round: another library reads and writes a buffer.
func TestPointerOfABuffer(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		other := must(foreign.Open(engine.Info().Backend == CUDA, engine.Info().Device))(t)
		defer other.Close()
		buffer := must(NewBuffer[float32](engine, 4))(t)
		want, got := []float32{1, 2, 3, 4}, make([]float32, 4)
		if err := errors.Join(other.Write(buffer.Pointer(), want), buffer.Read(t.Context(), got)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, error %v", got, err)
		}
	})
}

func TestForeignMemoryFaults(t *testing.T) {
	engine := newEngine(t, CPU)
	memory := make([]float32, 4)
	at := unsafe.Pointer(&memory[0])
	_, err := BufferAt[float32](engine, nil, 1)
	wantFault(t, err, ErrNullPointer, "nil")
	_, err = BufferAt[float32](engine, at, -1)
	wantFault(t, err, ErrBadSize, "-1 elements")
	_, err = BufferAt[float32](engine, unsafe.Add(at, 2), 1)
	wantFault(t, err, ErrMisaligned, "4 bytes")
	if _, err := BufferAt[float32](engine, nil, 0); err != nil {
		t.Errorf("no elements at nil: %v", err)
	}
	engine.Close()
	if _, err := BufferAt[float32](engine, at, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed engine: %v", err)
	}
	if _, err := engine.StreamAt(0); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed engine: %v", err)
	}
}

// What is nil or was never made is refused with a message, wherever it is given.
func TestNothingGiven(t *testing.T) {
	engine := newEngine(t, CPU)
	ctx := context.Background()
	m := must(NewMatrix(ctx, engine, small()))(t)
	plan := must(m.Plan(ctx, PlanOptions{N: 8}))(t)
	stream := must(engine.NewStream())(t)
	buffer := must(NewBuffer[float32](engine, 8))(t)
	o := Operands{B: Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}, C: Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}}
	var none context.Context
	second := func(_ any, err error) error { return err }
	for what, errs := range map[string][]error{
		"no engine": {
			second(NewMatrix(ctx, nil, small())), second(NewMatrix(ctx, &Engine{}, small())), second(NewBuffer[float32](nil, 1)),
			second(BufferAt[float32](&Engine{}, nil, 0)), second((*Engine)(nil).NewStream()), second((&Engine{}).StreamAt(0)),
		},
		"no matrix": {
			second((*Matrix)(nil).Plan(ctx, PlanOptions{N: 8})), second((&Matrix{}).Plan(ctx, PlanOptions{N: 8})),
			SetValues(ctx, nil, []float32{}), SetDeviceValues(ctx, &Matrix{}, buffer),
		},
		"no plan": {
			(*Plan)(nil).Multiply(ctx, 1, 0, o), (&Plan{}).Multiply(ctx, 1, 0, o), (&Plan{}).Enqueue(ctx, stream, 1, 0, o),
			second((&Plan{}).Recomputed(ctx)),
		},
		"no stream": {
			plan.Enqueue(ctx, nil, 1, 0, o), plan.Enqueue(ctx, &Stream{}, 1, 0, o), (*Stream)(nil).Wait(ctx), buffer.WriteAsync(nil, nil),
		},
		"no buffer": {
			(*DeviceBuffer[float32])(nil).Fill(ctx, 0), (&DeviceBuffer[float32]{}).Read(ctx, nil), (&DeviceBuffer[float32]{}).ReadAsync(stream, nil),
		},
		"ctx is nil": {
			second(NewMatrix(none, engine, small())), second(m.Plan(none, PlanOptions{N: 8})), plan.Multiply(none, 1, 0, o),
			plan.Enqueue(none, stream, 1, 0, o), SetValues(none, m, make([]float32, 18)), buffer.Fill(none, 0), stream.Wait(none),
		},
	} {
		for i, err := range errs {
			t.Logf("%s %d", what, i)
			wantFault(t, err, ErrNullPointer, what)
		}
	}
	for _, close := range []func() error{(*Engine)(nil).Close, (&Matrix{}).Close, (*Plan)(nil).Close, (&Stream{}).Close, (&DeviceBuffer[int32]{}).Close} {
		if err := close(); err != nil {
			t.Errorf("Close of nothing: %v", err)
		}
	}
}

// C may not overlap what is read.
func TestOverlap(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		ctx := t.Context()
		plan := must(must(NewMatrix(ctx, engine, small()))(t).Plan(ctx, PlanOptions{N: 8, Bias: ColumnBias, Alignment: 4}))(t)
		both := make([]float32, 48+32+8)
		dense := func(at, rows int) Dense[float32] {
			return Dense[float32]{Rows: rows, Cols: 8, Data: both[at : at+rows*8]}
		}
		onDevice := must(NewBuffer[float32](engine, len(both)))(t)
		view := func(at, rows int) DeviceDense[float32] {
			return DeviceDense[float32]{Rows: rows, Cols: 8, Buffer: onDevice, Offset: at}
		}
		if err := onDevice.Fill(ctx, 0); err != nil {
			t.Fatal(err)
		}
		for _, one := range []struct {
			b, c, bias int
			message    string // empty: they do not overlap
		}{
			{0, 48, 80, ""}, {40, 8, 0, ""}, {0, 47, 80, "C overlaps B"}, {0, 0, 80, "C overlaps B"}, {0, 48, 79, "C overlaps the bias"}, {40, 0, 31, "C overlaps the bias"},
		} {
			for _, o := range []Operands{
				{B: dense(one.b, 6), C: dense(one.c, 4), Bias: dense(one.bias, 1)}, {B: view(one.b, 6), C: view(one.c, 4), Bias: view(one.bias, 1)},
			} {
				err := plan.Multiply(ctx, 1, 0, o)
				if one.message != "" {
					wantFault(t, err, ErrBadArgument, one.message)
				} else if err != nil {
					t.Errorf("%+v: %v", one, err)
				}
			}
		}
	})
}
