// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// inStream puts a into device memory and makes a matrix of it in the order of s. The buffers are freed with done.
func inStream[T Element, I Index](t rapid.TB, s *Stream, engine *Engine, a BSR[T, I]) (m *Matrix, done func()) {
	t.Helper()
	rowPtr, colIdx, values := filled(t, engine, a.RowPtr), filled(t, engine, a.ColIdx), filled(t, engine, a.Values)
	device := DeviceBSR[T, I]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: rowPtr, ColIdx: colIdx, Values: values, Unsorted: a.Unsorted}
	if a.BlockIdx != nil {
		device.BlockIdx = filled(t, engine, a.BlockIdx)
	}
	m = must(NewDeviceMatrixIn(context.Background(), s, device))(t)
	return m, func() {
		rowPtr.Close()
		colIdx.Close()
		values.Close()
		if device.BlockIdx != nil {
			device.BlockIdx.Close()
		}
	}
}

// comparePlansInStream multiplies by a plan whose making was waited for, and by one that was made in the order of a
// stream, with the same kernel: in that stream, and in another one.
func comparePlansInStream[T Element, I Index](t rapid.TB, engine *Engine, p *product[T, T, I]) {
	t.Helper()
	background := context.Background()
	device, free, err := onDevice(t, engine, p.a)
	must(device, err)(t)
	defer free()
	s := must(engine.NewStream())(t)
	defer s.Close()
	m, done := inStream(t, s, engine, p.a)
	defer done()
	alignment := SizeOf[T]()
	if p.b.Stride%8 == 0 && p.c0.Stride%8 == 0 {
		alignment = 16
	}
	options := PlanOptions{N: p.n, LDB: p.b.Stride, LDC: p.c0.Stride, Alignment: alignment, Kernel: p.kernel, Compute: computeOf(p.kernel)}
	waited := must(device.Plan(background, options))(t)
	defer waited.Close()
	options.Kernel = waited.Info().Kernel
	plan := must(m.Plan(background, options))(t)
	if plan.Info().Entries != -1 {
		t.Fatalf("the host knows of %d entries", plan.Info().Entries)
	}
	want, got := p.newC(), p.newC()
	if err := waited.Multiply(background, p.alpha, p.beta, Operands{B: p.b, C: want}); err != nil {
		t.Fatal(err)
	}
	if err := plan.Multiply(background, p.alpha, p.beta, Operands{B: p.b, C: got}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want.Data, got.Data) {
		t.Fatalf("the products by kernel %s differ", options.Kernel)
	}
	b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
	defer b.Buffer.Close()
	defer c.Buffer.Close()
	if err := plan.Enqueue(background, s, p.alpha, p.beta, Operands{B: b, C: c}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(plan.Release(s), m.Release(s), m.Release(s), plan.Close()); err != nil {
		t.Fatal(err)
	}
	if err := plan.Enqueue(background, s, 1, 0, Operands{B: b, C: c}); !errors.Is(err, ErrClosed) {
		t.Fatalf("a released plan gave %v", err)
	}
	if err := m.Check(background); !errors.Is(err, ErrClosed) {
		t.Fatalf("a released matrix gave %v", err)
	}
	if err := s.Wait(background); err != nil {
		t.Fatal(err)
	}
	result := make([]T, len(want.Data))
	if err := c.Buffer.Read(background, result); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want.Data, result) {
		t.Fatalf("the product by kernel %s in the stream differs", options.Kernel)
	}
}

// A plan that is made in the order of a stream is the one that is waited for, for every kernel.
func TestPlansInStream(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, kernel := range kernelsOf(t, engine) {
		t.Run(kernel.Name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				s := drawServed(rt, kernel)
				s.rows *= rapid.IntRange(1, 4).Draw(rt, "rows again")
				switch kernel.DType {
				case BF16:
					comparePlansInStream(rt, engine, newServed[BFloat16](rt, engine, s))
				case FP16:
					comparePlansInStream(rt, engine, newServed[Float16](rt, engine, s))
				case FP64:
					comparePlansInStream(rt, engine, newServed[float64](rt, engine, s))
				default:
					comparePlansInStream(rt, engine, newServed[float32](rt, engine, s))
				}
			})
		})
	}
}

func newServed[T Element](t rapid.TB, engine *Engine, s shape) *product[T, T, int32] {
	if !serves[T, T](t, engine, s) {
		s.n, s.gapB, s.gapC = (s.n+7)/8*8, s.gapB/8*8, s.gapC/8*8
	}
	return newProduct[T, int32](s)
}

// Patterns that the planner takes special ways with.
func TestOddPlansInStream(t *testing.T) {
	engine := newEngine(t, CUDA)
	for name, s := range map[string]shape{
		"several passes":  {rows: 40, cols: 150_000, n: 8, blockM: 8, blockK: 1, density: 0.004},
		"many tiles":      {rows: 4000, cols: 24, n: 200, blockM: 2, blockK: 3, density: 0.5},
		"many row groups": {rows: 20_000, cols: 6, n: 8, blockM: 2, blockK: 3, density: 0.4},
		"no block":        {rows: 300, cols: 64, n: 100, blockM: 16, blockK: 16},
		"no row":          {rows: 0, cols: 64, n: 100, blockM: 16, blockK: 16, density: 1},
		"no column of A":  {rows: 300, cols: 0, n: 40, blockM: 16, blockK: 16, density: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s.alpha, s.beta, s.seed = 1, 1, 9
			comparePlansInStream(t, engine, newProduct[float32, int64](s))
		})
	}
}

// A fault is reported when it is asked for, and names the same place as where matrix_create waits for it.
func TestFaultsInStream(t *testing.T) {
	engine := newEngine(t, CUDA)
	background := context.Background()
	s := must(engine.NewStream())(t)
	defer s.Close()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProduct[float32, int32](shape{rows: 12, cols: 300, blockM: 4, blockK: 2, n: 8, density: 0.5, seed: rapid.Uint64().Draw(rt, "seed")})
		if len(p.a.ColIdx) > 0 && rapid.Bool().Draw(rt, "in ColIdx") {
			p.a.ColIdx[rapid.IntRange(0, len(p.a.ColIdx)-1).Draw(rt, "at")] = rapid.SampledFrom([]int32{-1, 0, 149, 150, 1 << 30}).Draw(rt, "column")
		} else {
			p.a.RowPtr[rapid.IntRange(0, len(p.a.RowPtr)-1).Draw(rt, "at")] = rapid.SampledFrom([]int32{-1, 0, 3, 1 << 30}).Draw(rt, "end")
		}
		_, free, want := onDevice(rt, engine, p.a)
		defer free()
		m, done := inStream(rt, s, engine, p.a)
		defer done()
		plan := must(m.Plan(background, PlanOptions{N: p.n}))(rt)
		if want != nil {
			c := p.newC()
			if err := plan.Multiply(background, 1, 0, Operands{B: p.b, C: c}); err != nil {
				rt.Fatal(err)
			}
			for row := range c.Rows {
				if slices.ContainsFunc(c.Data[row*c.Stride:][:c.Cols], func(x float32) bool { return x != 0 }) {
					rt.Fatal("a faulty index has entries")
				}
			}
		}
		got := m.Check(background)
		if (want == nil) != (got == nil) || want != nil && !strings.HasSuffix(got.Error(), strings.TrimPrefix(want.Error(), "sparsek: create matrix")) {
			rt.Fatalf("Check gave %v, and NewDeviceMatrix %v", got, want)
		}
		if err := errors.Join(plan.Release(s), m.Release(s)); err != nil {
			rt.Fatal(err)
		}
	})
	if err := s.Wait(background); err != nil {
		t.Fatal(err)
	}
}

// Nothing is read out of bounds of such an index where rows are matched, and no entry is listed.
func TestFaultsWhereRowsAreMatched(t *testing.T) {
	engine := newEngine(t, CUDA)
	background := context.Background()
	s := must(engine.NewStream())(t)
	defer s.Close()
	var products []*product[BFloat16, BFloat16, int32]
	for _, rows := range []int{100, 600} { // more than are matched with each other are sorted
		products = append(products, newProduct[BFloat16, int32](shape{rows: rows * 8, cols: 100 * 16, blockM: 8, blockK: 16, n: 2048, density: 0.2, beta: 1, seed: uint64(rows)}))
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := *products[rapid.IntRange(0, len(products)-1).Draw(rt, "product")]
		p.a.RowPtr, p.a.ColIdx = slices.Clone(p.a.RowPtr), slices.Clone(p.a.ColIdx)
		wild := rapid.SampledFrom([]int32{-1 << 31, -1, 1 << 30, 1<<31 - 1}).Draw(rt, "wild")
		if len(p.a.ColIdx) > 0 && rapid.Bool().Draw(rt, "in ColIdx") {
			p.a.ColIdx[rapid.IntRange(0, len(p.a.ColIdx)-1).Draw(rt, "at")] = wild
		} else {
			p.a.RowPtr[rapid.IntRange(0, len(p.a.RowPtr)-1).Draw(rt, "at")] = wild
		}
		m, done := inStream(rt, s, engine, p.a)
		defer done()
		plan := must(m.Plan(background, PlanOptions{N: p.n, Kernel: "gather_bf16_128_256", Workers: 1}))(rt)
		c := p.newC()
		if err := plan.Multiply(background, 1, 1, Operands{B: p.b, C: c}); err != nil {
			rt.Fatal(err)
		}
		if !slices.Equal(c.Data, p.c0.Data) {
			rt.Fatal("a faulty index has entries, or rows that are not there")
		}
		if m.Check(background) == nil {
			rt.Fatal("the fault is not found")
		}
		if err := errors.Join(plan.Release(s), m.Release(s)); err != nil {
			rt.Fatal(err)
		}
	})
}

// A program that never waits keeps nothing of its past steps.
func TestReleasedStepsLeaveNothing(t *testing.T) {
	engine := newEngine(t, CUDA)
	background := context.Background()
	p := newProduct[BFloat16, int32](shape{rows: 512, cols: 512, n: 64, blockM: 64, blockK: 64, density: 0.4, alpha: 1, seed: 4})
	s := must(engine.NewStream())(t)
	defer s.Close()
	b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
	rowPtr, colIdx, values := filled(t, engine, p.a.RowPtr), filled(t, engine, p.a.ColIdx), filled(t, engine, p.a.Values)
	before := engine.Children()
	var info PlanInfo
	for range 300 {
		m := must(NewDeviceMatrixIn(background, s, DeviceBSR[BFloat16, int32]{Rows: p.a.Rows, Cols: p.a.Cols, BlockM: 64, BlockK: 64,
			RowPtr: rowPtr, ColIdx: colIdx, Values: values}))(t)
		plan := must(m.Plan(background, PlanOptions{N: p.n}))(t)
		info = plan.Info()
		if err := errors.Join(plan.Enqueue(background, s, p.alpha, p.beta, Operands{B: b, C: c}), plan.Release(s), m.Release(s)); err != nil {
			t.Fatal(err)
		}
		if after := engine.Children(); after != before {
			t.Fatalf("%d objects are left of a step", after-before)
		}
	}
	if err := s.Wait(background); err != nil {
		t.Fatal(err)
	}
	got := p.newC()
	if err := c.Buffer.Read(background, got.Data); err != nil {
		t.Fatal(err)
	}
	p.verify(t, engine, info, got)
}

// One plan serves one index after another, of fewer blocks than there is room for.
func TestUpdatePlan(t *testing.T) {
	engine := newEngine(t, CUDA)
	background := context.Background()
	const blocks = 40
	s := must(engine.NewStream())(t)
	defer s.Close()
	sizes := shape{rows: 512, cols: 512, n: 64, blockM: 64, blockK: 64, density: 0.4, alpha: 1}
	values := must(NewBuffer[BFloat16](engine, blocks*64*64))(t)
	colIdx := must(NewBuffer[int32](engine, blocks))(t)
	rowPtr := must(NewBuffer[int32](engine, 9))(t)
	for _, err := range []error{rowPtr.Fill(background, 0), colIdx.Fill(background, 0xff), values.Fill(background, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a := DeviceBSR[BFloat16, int32]{Rows: 512, Cols: 512, BlockM: 64, BlockK: 64, RowPtr: rowPtr, ColIdx: colIdx, Values: values, Bound: true}
	m := must(NewDeviceMatrixIn(background, s, a))(t)
	plan := must(m.Plan(background, PlanOptions{N: 64}))(t)
	if err := UpdatePlan(background, s, plan, a); !errors.Is(err, ErrBadArgument) {
		t.Fatalf("with values: %v", err)
	}
	a.Values = nil
	for seed := range uint64(6) {
		sizes.seed = seed
		p := newProduct[BFloat16, int32](sizes)
		if len(p.a.ColIdx) > blocks {
			t.Fatalf("%d blocks", len(p.a.ColIdx))
		}
		c := inBuffer(t, engine, p.newC(), 0)
		b := inBuffer(t, engine, p.b, 0)
		room := append(slices.Clone(p.a.ColIdx), make([]int32, blocks-len(p.a.ColIdx))...)
		full := append(slices.Clone(p.a.Values), make([]BFloat16, values.Len()-len(p.a.Values))...)
		if err := errors.Join(rowPtr.WriteAsync(s, p.a.RowPtr), colIdx.WriteAsync(s, room), values.WriteAsync(s, full),
			UpdatePlan(background, s, plan, a), plan.Enqueue(background, s, 1, 0, Operands{B: b, C: c}), s.Wait(background), m.Check(background)); err != nil {
			t.Fatal(err)
		}
		got := p.newC()
		if err := c.Buffer.Read(background, got.Data); err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), got)
		b.Buffer.Close()
		c.Buffer.Close()
	}
}
