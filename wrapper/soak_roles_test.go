// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"bytes"
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

// soaked is a product with its matrix and plan, all of which close frees.
type soaked[T, C Element, I Index] struct {
	*product[T, C, I]
	s      *soak
	d      *draw
	matrix *Matrix
	plan   *Plan
	onGPU  []interface{ Close() error }
}

func newSoaked[T, C Element, I Index](t soakTB, s *soak, d *draw) *soaked[T, C, I] {
	x := &soaked[T, C, I]{product: newDrawnProduct[T, C, I](d, 0), s: s, d: d}
	done := false
	defer func() { // of what a failure leaves
		if !done {
			x.close()
		}
	}()
	ctx := context.Background()
	if d.indexOnDevice {
		matrix, free, err := onDevice(t, s.engine, x.a)
		x.matrix = must(matrix, err)(t)
		x.onGPU = append(x.onGPU, closer(free))
	} else {
		x.matrix = must(NewMatrix(ctx, s.engine, x.a))(t)
	}
	options := x.planOptions(d.alignment)
	options.ValuesStatic, options.Workers = d.valuesStatic, d.workers
	plan, err := x.matrix.Plan(ctx, options)
	if errors.Is(err, ErrNoSuchKernel) {
		options.Kernel = ""
		plan, err = x.matrix.Plan(ctx, options)
	}
	x.plan = must(plan, err)(t)
	s.countPlan(x.plan.Info())
	done = true
	return x
}

type closer func()

func (c closer) Close() error { c(); return nil }

func (x *soaked[T, C, I]) close() {
	x.plan.Close()
	x.matrix.Close()
	for _, one := range x.onGPU {
		one.Close()
	}
}

func (s *soak) countPlan(info PlanInfo) {
	s.count("plans of " + info.Kernel)
	if info.Tiles > int64(s.parallel) {
		s.count("plans of " + info.Kernel + " with more tiles than run at once")
	}
}

// verified compares c with float64: with a plain loop too where that is quick.
func (p *product[T, C, I]) verified(t soakTB, s *soak, info PlanInfo, c Dense[C]) {
	p.verifyGuards(t, c)
	if p.a.Rows*p.a.Cols*p.n <= 1<<16 {
		p.verifyPlainly(t, info, c)
	}
	p.verifyByCheck(t, s.engine, info, c)
	s.count("products compared with float64")
}

// sameBits compares two results of one plan, and what lies around them.
func sameBits[C Element](t soakTB, got, want Dense[C], what string) {
	if bytes.Equal(bytesOf(got.Data), bytesOf(want.Data)) {
		return
	}
	size := SizeOf[C]()
	for i := range got.Data {
		if a, b := bytesOf(got.Data)[i*size:(i+1)*size], bytesOf(want.Data)[i*size:(i+1)*size]; !bytes.Equal(a, b) {
			t.Fatalf("%s: element %d of row %d is %g (%x), and was %g (%x)", what, i%got.Stride, i/got.Stride,
				ToFloat32(got.Data[i]), a, ToFloat32(want.Data[i]), b)
		}
	}
}

func bytesOf[C Element](data []C) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*SizeOf[C]())
}

// changeValues gives A other values, which the plans use from now on.
func (x *soaked[T, C, I]) changeValues(t soakTB) {
	for i := range x.a.Values {
		x.a.Values[i] = FromFloat32[T](-0.5 * ToFloat32(x.a.Values[i]))
	}
	ctx := context.Background()
	if !x.d.indexOnDevice {
		if err := SetValues(ctx, x.matrix, x.a.Values); err != nil {
			t.Fatal(err)
		}
		return
	}
	values := filled(t, x.s.engine, x.a.Values)
	x.onGPU = append(x.onGPU, values)
	if err := SetDeviceValues(ctx, x.matrix, values); err != nil {
		t.Fatal(err)
	}
}

// noneAgain makes sure that nothing was computed again where all is finite.
func (x *soaked[T, C, I]) noneAgain(t soakTB) {
	if again := must(x.plan.Recomputed(context.Background()))(t); again != 0 && !x.infinite {
		t.Fatalf("kernel %s: sums were NaN, and %d slabs were computed again", x.plan.Info().Kernel, again)
	}
}

// multiplyTwice has two goroutines make the same product, each in its stream.
func multiplyTwice[T, C Element, I Index](t soakTB, s *soak, lane *soakLane, d *draw) {
	x := newSoaked[T, C, I](t, s, d)
	defer x.close()
	var b, bias Operand = x.b, x.bias
	if d.operandsOnDevice {
		inB, inBias := inBuffer(t, s.engine, x.b, d.offsetB), inBuffer(t, s.engine, x.bias, 1)
		defer inB.Buffer.Close()
		defer inBias.Buffer.Close()
		b, bias = inB, inBias
	}
	rounds := 1
	if d.newValues {
		rounds = 2
	}
	for round := range rounds {
		if round > 0 {
			x.changeValues(t)
		}
		var results [2]Dense[C]
		var group errgroup.Group
		for side := range results {
			group.Go(func() error {
				return attempt(s.t, func(t soakTB) { results[side] = x.multiplyIn(t, lane, side, b, bias) })
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		x.verified(t, s, x.plan.Info(), results[0])
		sameBits(t, results[1], results[0], "in the second stream")
	}
	x.noneAgain(t)
}

// multiplyIn makes the product several times in a stream, and returns the first result. All must be the same.
func (x *soaked[T, C, I]) multiplyIn(t soakTB, lane *soakLane, side int, b, bias Operand) (first Dense[C]) {
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
		c := x.newC()
		if !x.d.operandsOnDevice {
			if err := x.plan.Multiply(ctx, x.alpha, x.beta, x.operands(b, c, bias)); err != nil {
				t.Fatal(err)
			}
		} else {
			inC := inBuffer(t, x.s.engine, c, x.d.offsetC)
			err := multiplyIn(x.plan, stream, x.alpha, x.beta, x.operands(b, inC, bias))
			c.Data = readBack(t, inC, err)
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
	x := newSoaked[T, C, I](t, s, d)
	defer x.close()
	ctx := context.Background()
	b, bias := inBuffer(t, s.engine, x.b, d.offsetB), inBuffer(t, s.engine, x.bias, 1)
	defer b.Buffer.Close()
	defer bias.Buffer.Close()
	const graphs, products = 2, 2
	mode := d.capture
	if *soakEach > 1 && mode == foreign.CaptureGlobal { // it forbids what other goroutines of this role do with their libraries
		mode = foreign.CaptureThreadLocal
	}
	var c [graphs][products]DeviceDense[C]
	var exec [graphs]*foreign.Graph
	for i := range exec {
		for j := range c[i] {
			c[i][j] = inBuffer(t, s.engine, x.newC(), d.offsetC)
			defer c[i][j].Buffer.Close()
		}
		graph, err := lane.foreign[i].Capture(mode, func() (err error) {
			for j := range c[i] {
				err = errors.Join(err, x.plan.Enqueue(ctx, lane.at[i], x.alpha, x.beta, x.operands(b, c[i][j], bias)))
			}
			return err
		})
		exec[i] = must(graph, err)(t)
		defer exec[i].Close()
	}
	s.count("captures")
	var want Dense[C]
	for replay := range d.products {
		again := replay > 0
		if d.newValues && again && !d.indexOnDevice { // a graph keeps the address of the values
			x.changeValues(t)
			again = false
		}
		for i := range exec {
			for j := range c[i] {
				if err := c[i][j].Buffer.Write(ctx, append(make([]C, d.offsetC), x.c0.Data...)); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := errors.Join(exec[0].Launch(), exec[1].Launch(), lane.foreign[0].Wait(), lane.foreign[1].Wait())
		for i := range exec {
			for j := range c[i] {
				got := x.c0
				got.Data = readBack(t, c[i][j], err)
				if !again {
					x.verified(t, s, x.plan.Info(), got)
					want, again = got, true
				} else {
					sameBits(t, got, want, "a product of a graph")
				}
			}
		}
	}
	x.noneAgain(t)
	if d.closeFirst {
		x.plan.Close()
	}
}

// comeAndGo makes products whose plans and matrices are destroyed before it waits for anything.
func comeAndGo[T, C Element, I Index](t soakTB, s *soak, lane *soakLane, d *draw) {
	const count = 3
	lib, engine := s.engine.Library().Native(), s.engine.Native()
	var products [count]*product[T, C, I]
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
		p := newDrawnProduct[T, C, I](d, uint64(i))
		a := native.BSR{Rows: p.a.Rows, Cols: p.a.Cols, BlockM: p.a.BlockM, BlockK: p.a.BlockK, Blocks: len(p.a.ColIdx),
			DType: int32(DTypeOf[T]()), IndexType: native.Int32, Memory: native.Host}
		if d.index64 {
			a.IndexType = native.Int64
		}
		if d.indexOnDevice || s.engine.Info().Backend == CPU {
			// On the CPU such a buffer is memory that outlives the matrix, as its values must.
			rowPtr, colIdx, values := filled(t, s.engine, p.a.RowPtr), filled(t, s.engine, p.a.ColIdx), filled(t, s.engine, p.a.Values)
			free = append(free, func() { rowPtr.Close(); colIdx.Close(); values.Close() })
			a.RowPtr, a.ColIdx, a.Values = rowPtr.Pointer(), colIdx.Pointer(), values.Pointer()
			if d.indexOnDevice {
				a.Memory = native.Device
			}
		} else {
			a.RowPtr, a.ColIdx, a.Values = firstOf(p.a.RowPtr), firstOf(p.a.ColIdx), firstOf(p.a.Values)
		}
		matrix := must(lib.MatrixCreate(engine, a))(t)
		options := native.PlanOptions{N: p.n, LDB: p.b.Stride, LDC: p.c0.Stride, Alignment: d.alignment, Kernel: d.kernel,
			Workers: d.workers, ValuesStatic: d.valuesStatic,
			Output: int32(DTypeOf[C]()), Bias: int32(p.biasKind), Activation: int32(p.activation)}
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
		info[i] = PlanInfo{Kernel: described.Kernel, UnitRoundoff: described.UnitRoundoff, Tiles: described.Tiles}
		s.countPlan(info[i])
		b, bias := inBuffer(t, s.engine, p.b, d.offsetB), inBuffer(t, s.engine, p.bias, 1)
		c[i] = inBuffer(t, s.engine, p.newC(), d.offsetC)
		free = append(free, func() { b.Buffer.Close(); bias.Buffer.Close(); c[i].Buffer.Close() })
		var biasAt unsafe.Pointer
		if p.biasKind != NoBias {
			biasAt = at(bias)
		}
		err = errors.Join(infoErr, lib.Multiply(plan, native.Product{Alpha: p.alpha, Beta: p.beta, B: native.Operand{Data: at(b), Stride: p.b.Stride},
			C: native.Operand{Data: at(c[i]), Stride: p.c0.Stride}, Bias: biasAt, Stream: lane.own[i%2].Handle()}))
		lib.PlanDestroy(plan)
		lib.MatrixDestroy(matrix)
		if err != nil {
			t.Fatal(err)
		}
		products[i] = p
	}
	for i, p := range products {
		err := lib.StreamSynchronize(engine, lane.own[i%2].Handle())
		got := p.c0
		got.Data = readBack(t, c[i], err)
		p.verified(t, s, info[i], got)
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
