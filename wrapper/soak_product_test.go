// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"unsafe"

	. "github.com/sparsek/sparsek/wrapper"
)

// drawnProduct is one of a draw, or a batch of them.
type drawnProduct[T, C Element, I Index] struct {
	*opCase[T, C, I]
	batch int
}

// newDrawnProduct makes the operands. Other numbers give other patterns and values of the same shape.
func newDrawnProduct[T, C Element, I Index](d *draw, number uint64) drawnProduct[T, C, I] {
	s := d.opShape
	s.seed += number
	random := rand.New(rand.NewPCG(s.seed, 5))
	var rows [][]I
	for _, cols := range d.blockColumns(random) {
		var row []I
		for _, col := range cols {
			row = append(row, I(col))
		}
		rows = append(rows, row)
	}
	pattern := product[T, C, I]{a: BSR[T, I]{Rows: s.rows, Cols: s.cols, BlockM: s.blockM, BlockK: s.blockK}}
	pattern.setPattern(rows, func() T { return smallValue[T](random) })
	p := drawnProduct[T, C, I]{newOpCaseOf[T, C](pattern.a, s), max(1, s.batch)}
	for i := range p.batch {
		one := p.one(i)
		if d.spoilt == "where no block reads" || d.spoilt == "both" {
			one.poison()
		}
		if d.spoilt == "anywhere" || d.spoilt == "both" {
			one.b.scatter(random)
			if one.x != nil {
				one.x.scatter(random)
			}
		}
	}
	return p
}

// scatter makes NaN or Inf of some elements.
func (m *ordered[T]) scatter(random *rand.Rand) {
	for range 4 {
		if m.rows*m.cols > 0 {
			m.data[m.place(random.IntN(m.rows), random.IntN(m.cols))] = FromFloat32[T](float32(pick(random, math.Inf(1), math.Inf(-1), math.NaN())))
		}
	}
}

// part is matrix i of some that lie one below the other.
func (m *ordered[T]) part(i, rows int) *ordered[T] {
	if m == nil || m.rows == rows { // the same for all of a batch
		return m
	}
	one := *m
	one.rows = rows
	one.data = m.data[min(len(m.data), m.place(i*rows, 0)):]
	return &one
}

// step is how many elements lie between two such parts; 0 where there is but one.
func (m *ordered[T]) step(rows int) int {
	if m.rows == rows {
		return 0
	}
	return m.place(rows, 0)
}

// one is product i of the batch, in the same memory.
func (p drawnProduct[T, C, I]) one(i int) *opCase[T, C, I] {
	one := *p.opCase
	x, b, _ := opShape{op: p.op, shape: shape{rows: p.a.Rows, cols: p.a.Cols, n: p.n}}.extents()
	one.x, one.b, one.c0 = p.x.part(i, x[0]), p.b.part(i, b[0]), p.c0.part(i, p.c0.rows/p.batch)
	return &one
}

// onHost are the operands in host memory; C is to be set.
func (p drawnProduct[T, C, I]) onHost() Operands {
	o := p.operands(p.c0)
	o.Batch = p.batch
	return o
}

// inBuffers are the operands in buffers; C is to be set.
func (p drawnProduct[T, C, I]) inBuffers(t soakTB, s *soak, d *draw) (o Operands, free func()) {
	b, operand := p.b.onDevice(t, s.engine, d.offsetB)
	bias := inBuffer(t, s.engine, p.bias, 1)
	o = Operands{B: operand, Batch: p.batch}
	frees := []func() error{b.Buffer.Close, bias.Buffer.Close}
	if p.op == SDD {
		x, operand := p.x.onDevice(t, s.engine, d.offsetB)
		o.X, frees = operand, append(frees, x.Buffer.Close)
	}
	if p.biasKind != NoBias {
		o.Bias = bias
	}
	return o, func() {
		for _, f := range frees {
			f()
		}
	}
}

// verified compares c with float64: with a plain loop too where that is quick.
func (p drawnProduct[T, C, I]) verified(t soakTB, s *soak, info PlanInfo, c *ordered[C]) {
	c.verifyGuards(t)
	for i := range p.batch {
		one, result := p.one(i), c.part(i, c.rows/p.batch)
		if p.a.Rows*p.a.Cols*p.n <= 1<<16 {
			one.verifyPlainly(t, info, result)
		}
		one.verifyByCheck(t, s.engine, info, result)
		s.count("products compared with float64: " + p.op.String())
	}
}

// soaked is a product with its matrix and plan, all of which close frees.
type soaked[T, C Element, I Index] struct {
	drawnProduct[T, C, I]
	s      *soak
	d      *draw
	matrix *Matrix
	plan   *Plan
	made   *indexOfMask[I] // where it comes from a mask, else nil
	onGPU  []interface{ Close() error }
}

func newSoaked[T, C Element, I Index](t soakTB, s *soak, lane *soakLane, d *draw) *soaked[T, C, I] {
	x := &soaked[T, C, I]{drawnProduct: newDrawnProduct[T, C, I](d, 0), s: s, d: d}
	done := false
	defer func() { // of what a failure leaves
		if !done {
			x.close()
		}
	}()
	ctx := context.Background()
	x.newMatrix(t, lane)
	options := x.options()
	options.Kernel, options.Compute = d.kernel, computeOf(d.kernel)
	options.Alignment, options.ValuesStatic, options.Workers = d.alignment, d.valuesStatic, d.workers
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

// newMatrix makes the matrix of an index that comes from where the draw says.
func (x *soaked[T, C, I]) newMatrix(t soakTB, lane *soakLane) {
	ctx, onGPU := context.Background(), x.s.engine.Info().Backend == CUDA
	switch x.d.index {
	case soakIndexDevice:
		matrix, free, err := onDevice(t, x.s.engine, x.a)
		x.matrix = must(matrix, err)(t)
		x.onGPU = append(x.onGPU, closer(free))
		return
	case soakIndexStream:
		matrix, free := inStream(t, lane.own[0], x.s.engine, x.a)
		x.matrix = matrix
		x.onGPU = append(x.onGPU, closer(free))
		return
	case soakIndexMask:
		x.made = newIndexOfMask(t, lane.own[0], x.s.engine, x.a)
		x.onGPU = append(x.onGPU, closer(x.made.close))
		if onGPU {
			values := filled(t, x.s.engine, x.a.Values)
			x.onGPU = append(x.onGPU, values)
			x.matrix = must(NewDeviceMatrixIn(ctx, lane.own[0], IndexedBy(x.made.DeviceIndex, values)))(t)
			return
		}
		x.made.verify(t, x.a.RowPtr, x.a.ColIdx) // the plan is then made of the same index in memory of the host
	}
	x.matrix = must(NewMatrix(ctx, x.s.engine, x.a))(t)
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

// changeValues gives A other values, which the plans use from now on.
func (x *soaked[T, C, I]) changeValues(t soakTB) {
	for i := range x.a.Values {
		x.a.Values[i] = FromFloat32[T](-0.5 * ToFloat32(x.a.Values[i]))
	}
	ctx := context.Background()
	if x.d.index == soakIndexHost || x.s.engine.Info().Backend == CPU {
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

// finished makes sure that nothing was computed again where all is finite, and of the index that was made.
func (x *soaked[T, C, I]) finished(t soakTB) {
	if again := must(x.plan.Recomputed(context.Background()))(t); again != 0 && x.d.spoilt == "nowhere" {
		t.Fatalf("kernel %s: sums were NaN, and %d slabs were computed again", x.plan.Info().Kernel, again)
	}
	if x.made != nil {
		x.made.verify(t, x.a.RowPtr, x.a.ColIdx)
	}
}

func (s *soak) countPlan(info PlanInfo) {
	s.count("plans of " + info.Kernel)
	if info.Tiles > int64(s.parallel) {
		s.count("plans of " + info.Kernel + " with more tiles than run at once")
	}
}

// sameBits compares two results of one plan, and what lies around them.
func sameBits[C Element](t soakTB, got, want *ordered[C], what string) {
	if bytes.Equal(bytesOf(got.data), bytesOf(want.data)) {
		return
	}
	size := SizeOf[C]()
	for i := range got.data {
		if a, b := bytesOf(got.data)[i*size:(i+1)*size], bytesOf(want.data)[i*size:(i+1)*size]; !bytes.Equal(a, b) {
			t.Fatalf("%s: element %d of line %d is %g (%x), and was %g (%x)", what, i%got.stride, i/got.stride,
				ToFloat32(got.data[i]), a, ToFloat32(want.data[i]), b)
		}
	}
}

func bytesOf[C Element](data []C) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*SizeOf[C]())
}
