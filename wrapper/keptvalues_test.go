// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

func doubled[T Element](values []T) []T {
	twice := make([]T, len(values))
	for i, v := range values {
		twice[i] = FromFloat32[T](2 * ToFloat32(v))
	}
	return twice
}

// testNewValues multiplies by plans of m, a matrix of p's A, before and after it gets each kind of new values.
func testNewValues[T Element](t *testing.T, engine *Engine, m *Matrix, p *product[T, T, int32]) {
	t.Helper()
	narrow := *p // the same matrix, and another plan of it
	narrow.n = min(p.n, 64)
	narrow.b.Cols, narrow.c0.Cols = narrow.n, narrow.n
	var plans []*Plan
	for _, of := range []*product[T, T, int32]{p, &narrow} {
		plan := must(m.Plan(context.Background(), of.planOptions(16)))(t)
		defer plan.Close()
		plans = append(plans, plan)
	}
	check := func(what string) {
		t.Helper()
		for i, of := range []*product[T, T, int32]{p, &narrow} {
			of.a.Values = p.a.Values
			c := of.newC()
			if err := plans[i].Multiply(context.Background(), of.alpha, of.beta, Operands{B: of.b, C: c}); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if report, err := check.Product(engine.Library(), of.a, of.checkArgs(c, plans[i].Info())); err != nil {
				t.Fatalf("%s: %v\n%+v", what, err, report)
			}
		}
	}
	check("first values")
	p.a.Values = doubled(p.a.Values)
	if err := SetValues(context.Background(), m, p.a.Values); err != nil {
		t.Fatal(err)
	}
	check("new values from the host")
	p.a.Values = doubled(p.a.Values)
	buffer := filled(t, engine, p.a.Values)
	if err := SetDeviceValues(context.Background(), m, buffer); err != nil {
		t.Fatal(err)
	}
	check("values in device memory")
	p.a.Values = doubled(p.a.Values)
	if err := buffer.Write(context.Background(), p.a.Values); err != nil {
		t.Fatal(err)
	}
	check("changed in place")
	p.a.Values = doubled(p.a.Values)
	if err := SetValues(context.Background(), m, p.a.Values); err != nil {
		t.Fatal(err)
	}
	check("from the host again")
	plans[0].Close() // they may share what they keep
	p.a.Values = doubled(p.a.Values)
	if err := SetValues(context.Background(), m, p.a.Values); err != nil {
		t.Fatal(err)
	}
	plans[0] = must(m.Plan(context.Background(), p.planOptions(16)))(t)
	defer plans[0].Close()
	check("a new plan, after the other one got new values alone")
}

// onKeepingKernels runs a test on each kernel of which a plan keeps the values of a matrix as the kernel reads them.
func onKeepingKernels(t *testing.T, bf16, fp16, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	for _, prefix := range []string{"packed_", "scatter_", "planes"} {
		onFamily(t, prefix, bf16, fp16, fp32, fp64)
	}
}

// keptShapes are of single nonzeros and of blocks that several kernels serve, by few columns, whose tiles CTAs may share,
// and by many.
func keptShapes(kernel Kernel) []shape {
	shapes := []shape{
		{rows: 520, cols: 1100, n: 72, blockM: 1, blockK: 1, density: 0.2},
		{rows: 300, cols: 1177, n: 264, blockM: 4, blockK: 4, density: 0.15},
		{rows: 390, cols: 900, n: 136, blockM: 12, blockK: 12, density: 0.3},
	}
	if strings.HasPrefix(kernel.Name, "planes") {
		shapes = []shape{
			{rows: 520, cols: 1100, n: 72, blockM: 32, blockK: 32, density: 0.3},
			{rows: 384, cols: 1184, n: 264, blockM: 64, blockK: 64, density: 0.4},
		}
	}
	for i := range shapes {
		shapes[i].kernel, shapes[i].seed, shapes[i].alpha, shapes[i].beta = kernel.Name, uint64(i), 1, -0.5
	}
	return shapes
}

func testKeptValues[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	ran := false
	for _, s := range keptShapes(kernel) {
		if !serves[T, T](t, engine, s) {
			continue
		}
		ran = true
		p := newProduct[T, int32](s)
		m := must(NewMatrix(t.Context(), engine, p.a))(t)
		defer m.Close()
		pattern := p.a
		pattern.Values = nil
		later := must(NewMatrix(t.Context(), engine, pattern))(t)
		defer later.Close()
		for of, keeps := range map[*Matrix]bool{m: true, later: false} {
			plan := must(of.Plan(t.Context(), p.planOptions(16)))(t)
			if info := plan.Info(); keeps != (info.KeptBytes > 0) || info.WorkspaceBytes < info.KeptBytes {
				t.Errorf("of the values of a matrix that has them (%v), a plan keeps %d of %d bytes", keeps, info.KeptBytes, info.WorkspaceBytes)
			}
			plan.Close()
		}
		testNewValues(t, engine, m, p)
		if err := SetValues(t.Context(), later, p.a.Values); err != nil {
			t.Fatal(err)
		}
		testNewValues(t, engine, later, p)
	}
	if !ran {
		t.Errorf("kernel %s serves none of the shapes", kernel.Name)
	}
}

// New values reach the layout that a plan keeps of them: from the host, from the device, and changed there in place.
func TestKeptValues(t *testing.T) {
	onKeepingKernels(t, testKeptValues[BFloat16], testKeptValues[Float16], testKeptValues[float32], testKeptValues[float64])
}

func testKeptBesideOwn[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, s := range keptShapes(kernel) {
		if !serves[T, T](t, engine, s) {
			continue
		}
		p := newProduct[T, int32](s)
		m := must(NewMatrix(t.Context(), engine, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(t.Context(), p.planOptions(16)))(t)
		defer plan.Close()
		for i := range 4 {
			x := &own[T, T]{product: *p, values: i%2 == 1, alphaScale: 1, betaScale: 1}
			if x.values {
				x.a.Values = otherValues(p.a.Values, uint64(i))
			}
			x.verify(t, engine, plan.Info(), x.multiply(t, engine, plan, i >= 2))
		}
	}
}

// Products with values of their own do not use the layout that the plan keeps, and leave it as it is.
func TestKeptValuesBesideOwn(t *testing.T) {
	onKeepingKernels(t, testKeptBesideOwn[BFloat16], testKeptBesideOwn[Float16], testKeptBesideOwn[float32], testKeptBesideOwn[float64])
}

func testKeptInGraph[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	library := must(foreign.Open(true, engine.Info().Device))(t)
	defer library.Close()
	stream := must(engine.StreamAt(library.Stream()))(t)
	defer stream.Close()
	for _, s := range keptShapes(kernel) {
		if !serves[T, T](t, engine, s) {
			continue
		}
		s.beta = 0
		p := newProduct[T, int32](s)
		m := must(NewMatrix(t.Context(), engine, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(t.Context(), p.planOptions(16)))(t)
		defer plan.Close()
		c := p.newC()
		db, dc := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, c, 0)
		defer db.Buffer.Close()
		defer dc.Buffer.Close()
		graph := must(library.Capture(foreign.CaptureThreadLocal, func() error {
			return plan.Enqueue(context.Background(), stream, p.alpha, 0, Operands{B: db, C: dc})
		}))(t)
		defer graph.Close()
		for range 3 {
			if err := errors.Join(graph.Launch(), library.Wait(), dc.Buffer.Read(t.Context(), c.Data)); err != nil {
				t.Fatal(err)
			}
			if report, err := check.Product(engine.Library(), p.a, p.checkArgs(c, plan.Info())); err != nil {
				t.Fatalf("%v\n%+v", err, report)
			}
			p.a.Values = doubled(p.a.Values)
			if err := SetValues(t.Context(), m, p.a.Values); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A replayed product is of the values that the matrix has then.
func TestKeptValuesInGraph(t *testing.T) {
	onKeepingKernels(t, testKeptInGraph[BFloat16], testKeptInGraph[Float16], testKeptInGraph[float32], testKeptInGraph[float64])
}

func testKeptBatchInvariant[T Element](t *testing.T, engine *Engine) {
	for _, block := range []int{1, 4, 12, 64} {
		p := newProduct[T, int32](shape{rows: 600, cols: 1200, n: 64, blockM: block, blockK: block, density: 0.2, alpha: 1, seed: 8})
		pattern := p.a
		pattern.Values = nil
		m := must(NewMatrix(t.Context(), engine, pattern))(t)
		defer m.Close()
		kernel := func(n int) string {
			plan := must(m.Plan(t.Context(), PlanOptions{N: n, BatchInvariant: true}))(t)
			defer plan.Close()
			return plan.Info().Kernel
		}
		before := kernel(8)
		if err := SetValues(t.Context(), m, p.a.Values); err != nil {
			t.Fatal(err)
		}
		if after := kernel(64); after != before {
			t.Errorf("blocks of %d: kernel %s without values, and %s with them", block, before, after)
		}
	}
}

// The kernel that is the same for all numbers of columns is the same whether there are values to be kept.
func TestKeptValuesBatchInvariant(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		testKeptBatchInvariant[BFloat16](t, engine)
		testKeptBatchInvariant[float32](t, engine)
		testKeptBatchInvariant[float64](t, engine)
	})
}

// frozenMatrices makes matrices with the values in buffer, which change by SetDeviceValues alone: of an index on the host,
// and of one in device memory.
func frozenMatrices[T Element](t *testing.T, engine *Engine, a BSR[T, int32], buffer *DeviceBuffer[T]) []*Matrix {
	t.Helper()
	host := a
	host.Values, host.Frozen = nil, true
	ofHost := must(NewMatrix(t.Context(), engine, host))(t)
	if err := SetDeviceValues(t.Context(), ofHost, buffer); err != nil {
		t.Fatal(err)
	}
	d := DeviceBSR[T, int32]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: filled(t, engine, a.RowPtr),
		ColIdx: filled(t, engine, a.ColIdx), Values: buffer, Frozen: true}
	return []*Matrix{ofHost, must(NewDeviceMatrix(t.Context(), engine, d))(t)}
}

func testFrozenValues[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, s := range keptShapes(kernel) {
		if !serves[T, T](t, engine, s) {
			continue
		}
		p := newProduct[T, int32](s)
		buffer := filled(t, engine, p.a.Values)
		for _, m := range frozenMatrices(t, engine, p.a, buffer) {
			defer m.Close()
			plan := must(m.Plan(t.Context(), p.planOptions(16)))(t)
			defer plan.Close()
			if plan.Info().KeptBytes == 0 {
				t.Error("a plan of frozen values in device memory keeps none of them")
			}
			check := func(what string) {
				t.Helper()
				c := p.newC()
				if err := plan.Multiply(t.Context(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if report, err := check.Product(engine.Library(), p.a, p.checkArgs(c, plan.Info())); err != nil {
					t.Fatalf("%s: %v\n%+v", what, err, report)
				}
			}
			check("first values")
			p.a.Values = doubled(p.a.Values)
			if err := errors.Join(buffer.Write(t.Context(), p.a.Values), SetDeviceValues(t.Context(), m, buffer)); err != nil {
				t.Fatal(err)
			}
			check("others in the same buffer")
			p.a.Values = otherValues(p.a.Values, 3)
			if err := SetValues(t.Context(), m, p.a.Values); err != nil {
				t.Fatal(err)
			}
			check("others from the host")
			p.a.Values = otherValues(p.a.Values, 4)
			if err := errors.Join(buffer.Write(t.Context(), p.a.Values), SetDeviceValues(t.Context(), m, buffer)); err != nil {
				t.Fatal(err)
			}
			check("others in the buffer again")
		}
	}
}

// Plans keep values in device memory that change by SetDeviceValues alone, and have the new ones behind it.
func TestFrozenValues(t *testing.T) {
	onKeepingKernels(t, testFrozenValues[BFloat16], testFrozenValues[Float16], testFrozenValues[float32], testFrozenValues[float64])
}

// A plan that waits for nothing keeps no values, and says so.
func TestFrozenInStream(t *testing.T) {
	engine := newEngine(t, CUDA)
	s := must(engine.NewStream())(t)
	defer s.Close()
	a := DeviceBSR[float32, int32]{Rows: 2, Cols: 2, BlockM: 2, BlockK: 2, RowPtr: filled(t, engine, []int32{0, 1}),
		ColIdx: filled(t, engine, []int32{0}), Values: filled(t, engine, make([]float32, 4)), Frozen: true}
	_, err := NewDeviceMatrixIn(t.Context(), s, a)
	wantFault(t, err, ErrBadArgument, "SPARSEK_BSR_FROZEN")
}

func testMostKept(t *testing.T, engine *Engine, kernel Kernel) {
	const most = 512 << 20
	p := newProduct[float32, int32](shape{rows: 4096, cols: 4096, n: 160, blockM: 64, blockK: 64, density: 1, alpha: 1, seed: 5, kernel: kernel.Name})
	m := must(NewMatrix(t.Context(), engine, p.a))(t)
	defer m.Close()
	kept := int64(0)
	for n := 16; n <= p.n; n += 16 {
		narrow := *p
		narrow.n, narrow.b.Cols, narrow.c0.Cols = n, n, n
		plan := must(m.Plan(t.Context(), narrow.planOptions(16)))(t)
		defer plan.Close()
		kept += plan.Info().KeptBytes
		if plan.Info().KeptBytes > 0 {
			continue
		}
		c := narrow.newC()
		if err := plan.Multiply(t.Context(), narrow.alpha, narrow.beta, Operands{B: narrow.b, C: c}); err != nil {
			t.Fatal(err)
		}
		if report, err := check.Product(engine.Library(), narrow.a, narrow.checkArgs(c, plan.Info())); err != nil {
			t.Fatalf("%v\n%+v", err, report)
		}
		if kept < most/2 || kept > most {
			t.Errorf("plans keep %d bytes", kept)
		}
		return
	}
	t.Errorf("all plans keep %d bytes together", kept)
}

// Plans that share no layout keep up to 512 MiB of a matrix together. Products of further plans pack the values.
func TestMostKeptValues(t *testing.T) {
	onFamily(t, "planes_fp32", nil, nil, testMostKept, nil)
}

// Plans of a large matrix keep values in the order of their lists, where stages of A would take 65 MiB.
func TestKeptListsOfLargeMatrices(t *testing.T) {
	onFamily(t, "scatter_bf16_128_64", func(t *testing.T, engine *Engine, kernel Kernel) {
		s := shape{rows: 8192, cols: 4160, n: 72, blockM: 1, blockK: 1, density: 0.02, alpha: 1, seed: 9, kernel: kernel.Name}
		p := newProduct[BFloat16, int32](s)
		m := must(NewMatrix(t.Context(), engine, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(t.Context(), p.planOptions(16)))(t)
		if kept := plan.Info().KeptBytes; kept == 0 || kept > 32<<20 {
			t.Errorf("a plan keeps %d bytes", kept)
		}
		plan.Close()
		testNewValues(t, engine, m, p)
	}, nil, nil, nil)
}
