// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"unsafe"

	"golang.org/x/sync/errgroup"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

func runDraw[T, C Element, I Index](t soakTB, s *soak, lane *soakLane, d *draw) {
	switch lane.role {
	case soakMultiply:
		multiplyTwice[T, C, I](t, s, lane, d)
	case soakGraph:
		captureAndReplay[T, C, I](t, s, lane, d)
	case soakComeAndGo:
		comeAndGo[T, C, I](t, s, lane, d)
	}
}

// multiplyTwice has two goroutines make the same product, each in its stream.
func multiplyTwice[T, C Element, I Index](t soakTB, s *soak, lane *soakLane, d *draw) {
	x := newSoaked[T, C, I](t, s, lane, d)
	defer x.close()
	o := x.onHost()
	if d.operandsOnDevice {
		inBuffers, free := x.inBuffers(t, s, d)
		defer free()
		o = inBuffers
	}
	rounds := 1
	if d.newValues {
		rounds = 2
	}
	for round := range rounds {
		if round > 0 {
			x.changeValues(t)
		}
		var results [2]*ordered[C]
		var group errgroup.Group
		for side := range results {
			group.Go(func() error {
				return attempt(s.t, func(t soakTB) { results[side] = x.multiplyIn(t, lane, side, o) })
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		x.verified(t, s, x.plan.Info(), results[0])
		sameBits(t, results[1], results[0], "in the second stream")
	}
	x.finished(t)
}

// multiplyIn makes the product several times in a stream, and returns the first result. All must be the same.
func (x *soaked[T, C, I]) multiplyIn(t soakTB, lane *soakLane, side int, o Operands) (first *ordered[C]) {
	ctx := context.Background()
	var stream *Stream // the library's choice
	switch x.d.streams[side] {
	case "own":
		stream = lane.own[side]
	case "foreign":
		stream = lane.at[side]
	case "default":
		stream = lane.zero
	}
	for i := range x.d.products {
		c := x.c0.clone()
		o.C = c.operand()
		if !x.d.operandsOnDevice {
			if err := x.plan.Multiply(ctx, x.alpha, x.beta, o); err != nil {
				t.Fatal(err)
			}
		} else {
			inC, operand := c.onDevice(t, x.s.engine, x.d.offsetC)
			o.C = operand
			err := multiplyIn(x.plan, stream, x.alpha, x.beta, o)
			c.data = readBack(t, inC, err)
			inC.Buffer.Close()
		}
		if i == 0 {
			first = c
		} else {
			sameBits(t, c, first, "a later product in stream "+x.d.streams[side])
		}
	}
	return first
}

// readBack is what a buffer holds from C's first element on, unless there was an error before.
func readBack[C Element](t soakTB, c DeviceDense[C], before error) []C {
	all := make([]C, c.Buffer.Len())
	if err := errors.Join(before, c.Buffer.Read(context.Background(), all)); err != nil {
		t.Fatal(err)
	}
	for i, value := range all[:c.Offset] {
		if value != 0 {
			t.Fatalf("%d elements before C, %g was written", c.Offset-i, ToFloat32(value))
		}
	}
	return all[c.Offset:]
}

// captureAndReplay captures products of one plan into two graphs and replays them at once.
func captureAndReplay[T, C Element, I Index](t soakTB, s *soak, lane *soakLane, d *draw) {
	x := newSoaked[T, C, I](t, s, lane, d)
	defer x.close()
	ctx := context.Background()
	o, free := x.inBuffers(t, s, d)
	defer free()
	const graphs, products = 2, 2
	mode := d.capture
	if *soakEach > 1 && mode == foreign.CaptureGlobal { // it forbids what other goroutines of this role do with their libraries
		mode = foreign.CaptureThreadLocal
	}
	var c [graphs][products]DeviceDense[C]
	var outs [graphs][products]Operand
	var exec [graphs]*foreign.Graph
	for i := range exec {
		for j := range c[i] {
			c[i][j], outs[i][j] = x.c0.onDevice(t, s.engine, d.offsetC)
			defer c[i][j].Buffer.Close()
		}
		graph, err := lane.foreign[i].Capture(mode, func() (err error) {
			for _, o.C = range outs[i] {
				err = errors.Join(err, x.plan.Enqueue(ctx, lane.at[i], x.alpha, x.beta, o))
			}
			return err
		})
		exec[i] = must(graph, err)(t)
		defer exec[i].Close()
	}
	s.count("captures")
	var want *ordered[C]
	for replay := range d.products {
		again := replay > 0
		if d.newValues && again && d.index == soakIndexHost { // a graph keeps the address of the values
			x.changeValues(t)
			again = false
		}
		for i := range exec {
			for j := range c[i] {
				if err := c[i][j].Buffer.Write(ctx, append(make([]C, d.offsetC), x.c0.data...)); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := errors.Join(exec[0].Launch(), exec[1].Launch(), lane.foreign[0].Wait(), lane.foreign[1].Wait())
		for i := range exec {
			for j := range c[i] {
				got := *x.c0
				got.data = readBack(t, c[i][j], err)
				if !again {
					x.verified(t, s, x.plan.Info(), &got)
					want, again = &got, true
				} else {
					sameBits(t, &got, want, "a product of a graph")
				}
			}
		}
	}
	x.finished(t)
	if d.closeFirst {
		x.plan.Close()
	}
}

// comeAndGo makes products whose plans and matrices are destroyed before it waits for anything.
func comeAndGo[T, C Element, I Index](t soakTB, s *soak, lane *soakLane, d *draw) {
	const count = 3
	lib, engine := s.engine.Library().Native(), s.engine.Native()
	var products [count]drawnProduct[T, C, I]
	var info [count]PlanInfo
	var c [count]DeviceDense[C]
	// Goes last, so that no work is left on memory that is freed.
	var free []func()
	defer func() {
		_ = errors.Join(lib.StreamSynchronize(engine, lane.own[0].Handle()), lib.StreamSynchronize(engine, lane.own[1].Handle()))
		for _, f := range free {
			f()
		}
	}()
	for i := range products {
		p, stream := newDrawnProduct[T, C, I](d, uint64(i)), lane.own[i%2].Handle()
		products[i] = p
		a, freeA := p.raw(t, s, d, stream)
		free = append(free, freeA)
		matrix := must(lib.MatrixCreate(engine, a))(t)
		options := native.PlanOptions{Op: int32(p.op), N: p.n, OrderX: int32(d.orderX), OrderB: int32(d.orderB), OrderC: int32(d.orderC),
			LDB: p.b.stride, Alignment: d.alignment, Kernel: d.kernel, Compute: int32(computeOf(d.kernel)), Workers: d.workers, ValuesStatic: d.valuesStatic,
			Output: int32(DTypeOf[C]()), Bias: int32(p.biasKind), Activation: int32(p.activation)}
		what := native.Product{Alpha: p.alpha, Beta: p.beta, Batch: p.batch, Stream: stream}
		if p.op == SDD {
			options.LDX = p.x.stride
		} else {
			options.LDC, what.C.Stride = p.c0.stride, p.c0.stride
		}
		plan, err := lib.PlanCreate(matrix, options)
		if errors.Is(err, ErrNoSuchKernel) {
			options.Kernel = ""
			plan, err = lib.PlanCreate(matrix, options)
		}
		if err != nil {
			lib.MatrixDestroy(matrix)
			t.Fatal(err)
		}
		described, infoErr := lib.PlanInfo(plan)
		info[i] = PlanInfo{Kernel: described.Kernel, UnitRoundoff: described.UnitRoundoff, ProductRoundoff: described.ProductRoundoff, Tiles: described.Tiles}
		s.countPlan(info[i])
		free = append(free, p.place(t, s, d, &what, &c[i]))
		err = errors.Join(infoErr, lib.Multiply(plan, what))
		lib.PlanDestroy(plan)
		lib.MatrixDestroy(matrix)
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range products {
		err := lib.StreamSynchronize(engine, lane.own[i%2].Handle())
		got := *p.c0
		got.data = readBack(t, c[i], err)
		p.verified(t, s, info[i], &got)
	}
}

// raw is A where the draw says, and what frees it.
func (p drawnProduct[T, C, I]) raw(t soakTB, s *soak, d *draw, stream uintptr) (a native.BSR, free func()) {
	a = native.BSR{Rows: p.a.Rows, Cols: p.a.Cols, BlockM: p.a.BlockM, BlockK: p.a.BlockK, Blocks: len(p.a.ColIdx),
		DType: int32(DTypeOf[T]()), IndexType: native.Int32, Memory: native.Host}
	if d.index64 {
		a.IndexType = native.Int64
	}
	onGPU := s.engine.Info().Backend == CUDA
	if onGPU && d.index == soakIndexHost {
		a.RowPtr, a.ColIdx, a.Values = firstOf(p.a.RowPtr), firstOf(p.a.ColIdx), firstOf(p.a.Values)
		return a, func() {}
	}
	// On the CPU such a buffer is memory that outlives the matrix, as its values must.
	rowPtr, colIdx, values := filled(t, s.engine, p.a.RowPtr), filled(t, s.engine, p.a.ColIdx), filled(t, s.engine, p.a.Values)
	a.RowPtr, a.ColIdx, a.Values = rowPtr.Pointer(), colIdx.Pointer(), values.Pointer()
	if onGPU {
		a.Memory = native.Device
		if d.index != soakIndexDevice {
			a.Async, a.Stream = true, stream
		}
	}
	return a, func() { rowPtr.Close(); colIdx.Close(); values.Close() }
}

// place puts the operands into buffers, and says where they are.
func (p drawnProduct[T, C, I]) place(t soakTB, s *soak, d *draw, what *native.Product, c *DeviceDense[C]) (free func()) {
	one := p.one(0)
	b, _ := p.b.onDevice(t, s.engine, d.offsetB)
	bias := inBuffer(t, s.engine, p.bias, 1)
	*c, _ = p.c0.onDevice(t, s.engine, d.offsetC)
	frees := []func() error{b.Buffer.Close, bias.Buffer.Close, c.Buffer.Close}
	what.B.Data, what.B.Stride, what.C.Data = at(b), p.b.stride, at(*c)
	what.StepB, what.StepC = p.b.step(one.b.rows), p.c0.step(one.c0.rows)
	if p.op == SDD {
		x, _ := p.x.onDevice(t, s.engine, d.offsetB)
		frees = append(frees, x.Buffer.Close)
		what.X.Data, what.X.Stride, what.StepX = at(x), p.x.stride, p.x.step(one.x.rows)
	}
	if p.biasKind != NoBias {
		what.Bias = at(bias)
	}
	return func() {
		for _, f := range frees {
			f()
		}
	}
}

func firstOf[T any](list []T) unsafe.Pointer {
	if len(list) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(list))
}

// at is the address of the first element.
func at[T Element](d DeviceDense[T]) unsafe.Pointer {
	return unsafe.Add(d.Buffer.Pointer(), d.Offset*SizeOf[T]())
}
