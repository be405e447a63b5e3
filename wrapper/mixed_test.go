// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// narrowA is A of a product in a narrower type than that of B.
type narrowA interface {
	matrix(engine *Engine) (*Matrix, error)
	check(engine *Engine, args check.Args) (check.Report, error)
	// values are those of A behind `offset` elements, where the back-end has them.
	values(t rapid.TB, engine *Engine, offset int) (values Operand, done func())
}

type narrowBSR[A Element, I Index] struct{ a BSR[A, I] }

func (n narrowBSR[A, I]) matrix(engine *Engine) (*Matrix, error) {
	return NewMatrix(context.Background(), engine, n.a)
}

func (n narrowBSR[A, I]) check(engine *Engine, args check.Args) (check.Report, error) {
	return check.Product(engine.Library(), n.a, args)
}

func (n narrowBSR[A, I]) values(t rapid.TB, engine *Engine, offset int) (values Operand, done func()) {
	return operandOf(t, engine, Dense[A]{Rows: len(n.a.ColIdx) * n.a.BlockM, Cols: n.a.BlockK, Data: n.a.Values}, offset)
}

// narrowed rounds A to that type, in which it is then given; nil for 0.
func narrowed[T Element, I Index](a *BSR[T, I], to DType) narrowA {
	switch to {
	case BF16:
		return roundA[BFloat16](a)
	case FP16:
		return roundA[Float16](a)
	case FP32:
		return roundA[float32](a)
	}
	return nil
}

func roundA[A, T Element, I Index](a *BSR[T, I]) narrowA {
	n := BSR[A, I]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Values: make([]A, len(a.Values))}
	for i, v := range a.Values {
		n.Values[i] = FromFloat32[A](ToFloat32(v))
		a.Values[i] = FromFloat32[T](ToFloat32(n.Values[i]))
	}
	return narrowBSR[A, I]{n}
}

func (p *product[T, C, I]) matrix(engine *Engine) (*Matrix, error) {
	if p.narrow != nil {
		return p.narrow.matrix(engine)
	}
	return NewMatrix(context.Background(), engine, p.a)
}

func (p *product[T, C, I]) check(engine *Engine, args check.Args) (check.Report, error) {
	if p.narrow != nil {
		return p.narrow.check(engine, args)
	}
	return check.Product(engine.Library(), p.a, args)
}

// pairs are the types of A and B that are served and are not the same.
var pairs = []struct{ a, b DType }{{BF16, FP32}, {FP16, FP32}, {BF16, FP64}, {FP16, FP64}, {FP32, FP64}}

// onEachPair runs a test, the one for B's type, for each pair of types on each back-end.
func onEachPair(t *testing.T, fp32, fp64 func(t *testing.T, engine *Engine, a DType)) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, pair := range pairs {
			t.Run(fmt.Sprintf("%v by %v", pair.a, pair.b), func(t *testing.T) {
				if pair.b == FP64 {
					fp64(t, engine, pair.a)
				} else {
					fp32(t, engine, pair.a)
				}
			})
		}
	})
}

// mixedKernelsOf are the kernels of the GPU for A and B of two types whose names begin with prefix.
func mixedKernelsOf(t *testing.T, engine *Engine, prefix string) []Kernel {
	var own []Kernel
	for _, kernel := range must(engine.Library().Kernels())(t) {
		if kernel.DTypeB != 0 && strings.HasPrefix(kernel.Name, prefix) {
			own = append(own, kernel)
		}
	}
	if len(own) == 0 {
		t.Fatalf("no kernel %s... takes A and B of two types", prefix)
	}
	return own
}

// onMixedKernels runs a test, the one for B's type, on those kernels of a GPU.
func onMixedKernels(t *testing.T, prefix string, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	engine := newEngine(t, CUDA)
	for _, kernel := range mixedKernelsOf(t, engine, prefix) {
		t.Run(kernel.Name, func(t *testing.T) {
			if kernel.DTypeB == FP64 {
				fp64(t, engine, kernel)
			} else {
				fp32(t, engine, kernel)
			}
		})
	}
}

// testDrawn computes a product with a C of the type of B or, where that is fp32, of any.
func testDrawn[T Element](t *rapid.T, engine *Engine, s shape) PlanInfo {
	if rapid.Bool().Draw(t, "epilogue") {
		s.bias, s.activation = drawEpilogue(t)
	}
	if DTypeOf[T]() == FP64 || rapid.Bool().Draw(t, "C of B's type") {
		return testProduct[T, T, int32](t, engine, s)
	}
	if rapid.Bool().Draw(t, "bf16") {
		return testProduct[T, BFloat16, int32](t, engine, s)
	}
	return testProduct[T, Float16, int64](t, engine, s)
}

func testMixedProducts[T Element](t *testing.T, engine *Engine, a DType) {
	for _, kernel := range kernels(t, engine) {
		t.Run(kernel, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				s := drawShape(rt)
				s.typeA, s.kernel = a, kernel
				info := testDrawn[T](rt, engine, s)
				want := 0x1p-24
				if DTypeOf[T]() == FP64 {
					want = 0x1p-53
				}
				if info.UnitRoundoff != want {
					rt.Fatalf("kernel %s: unit roundoff %g", info.Kernel, info.UnitRoundoff)
				}
			})
		})
	}
}

// A in a narrower type than B and C: sums are of the type of B.
func TestMixedProducts(t *testing.T) {
	onEachPair(t, testMixedProducts[float32], testMixedProducts[float64])
}

func testMixedKernel[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSmallBlocks(rt, kernel)
		s.typeA = kernel.DType
		if info := testDrawn[T](rt, engine, s); info.Kernel != kernel.Name {
			rt.Fatalf("kernel %s ran", info.Kernel)
		}
	})
}

// Small blocks, long rows and short ones, with each kernel for two types by its name.
func TestMixedKernels(t *testing.T) {
	onMixedKernels(t, "", testMixedKernel[float32], testMixedKernel[float64])
}

func testFewMixedWorkers[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	background := context.Background()
	for _, block := range [][2]int{{1, 1}, {3, 3}, {5, 7}, {8, 8}, {24, 16}} {
		for _, n := range []int{1, 8, 70} {
			p := newProduct[T, int32](shape{rows: 6000, cols: 1200, n: n, blockM: block[0], blockK: block[1], density: 0.05, alpha: 1, seed: 5, typeA: kernel.DType, kernel: kernel.Name})
			m := must(p.matrix(engine))(t)
			options := p.planOptions(SizeOf[T]())
			options.Workers = 3
			plan := must(m.Plan(background, options))(t)
			first := p.newC()
			for turn := range 2 {
				c := p.newC()
				if err := plan.Multiply(background, p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
					t.Fatal(err)
				}
				if turn == 0 {
					p.verify(t, engine, plan.Info(), c)
					first = c
				} else if at := firstOther(first.Data, c.Data); at >= 0 {
					t.Fatalf("element %d is %v, then %v", at, first.Data[at], c.Data[at])
				}
			}
			if err := errors.Join(plan.Close(), m.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// firstOther is the first place where a and b differ, or -1.
func firstOther[T comparable](a, b []T) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// Many chunks of rows for each of three CTAs, and the same bits again.
func TestFewMixedWorkers(t *testing.T) {
	onMixedKernels(t, "", testFewMixedWorkers[float32], testFewMixedWorkers[float64])
}

func testMixedValues[T Element](t *testing.T, engine *Engine, a DType) {
	background := context.Background()
	for _, n := range []int{1, 5, 33} {
		p := newProduct[T, int32](shape{rows: 300, cols: 400, n: n, blockM: 5, blockK: 4, density: 0.3, alpha: 1, seed: 6, typeA: a})
		m := must(p.matrix(engine))(t)
		plan := must(m.Plan(background, p.planOptions(SizeOf[T]())))(t)
		for _, offset := range []int{1, 4} {
			values, freeValues := p.narrow.values(t, engine, offset)
			b, freeB := operandOf(t, engine, p.b, offset)
			c := p.newC()
			if err := plan.Multiply(background, 1, 0, Operands{B: b, C: c, Values: values}); err != nil {
				t.Fatal(err)
			}
			p.verify(t, engine, plan.Info(), c)
			freeValues()
			freeB()
		}
		wide := Dense[T]{Rows: len(p.a.ColIdx) * 5, Cols: 4, Data: p.a.Values}
		wantFault(t, plan.Multiply(background, 1, 0, Operands{B: p.b, C: p.newC(), Values: wide}), ErrBadArgument, "the matrix of "+a.String())
		if err := errors.Join(plan.Close(), m.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Values that come with a product are of A's type, at addresses that are multiples of an element alone.
func TestMixedValues(t *testing.T) {
	onEachPair(t, testMixedValues[float32], testMixedValues[float64])
}

// A plan in memory of the caller's.
func TestMixedPlanData(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		background := context.Background()
		p := newProduct[float64, int32](shape{rows: 301, cols: 250, n: 3, blockM: 7, blockK: 5, density: 0.4, alpha: 1, seed: 8, typeA: FP32})
		layout := must(engine.MeasurePlan(PatternSizes{Rows: 301, Cols: 250, BlockM: 7, BlockK: 5, Blocks: len(p.a.ColIdx), DType: FP32}, PlanOptions{N: 3, DTypeB: FP64, Alignment: 8}))(t)
		memory := must(NewBuffer[int64](engine, layout.MemoryLen()))(t)
		workspace := must(NewBuffer[int64](engine, max(1, layout.WorkspaceLen())))(t)
		plan := must(layout.Plan(memory, workspace))(t)
		s := must(engine.NewStream())(t)
		a := DeviceBSR[float32, int32]{Rows: 301, Cols: 250, BlockM: 7, BlockK: 5, RowPtr: filled(t, engine, p.a.RowPtr), ColIdx: filled(t, engine, p.a.ColIdx)}
		values, freeValues := p.narrow.values(t, engine, 0)
		defer freeValues()
		b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
		if err := errors.Join(WritePlan(background, s, layout, a, memory, nil), plan.Enqueue(background, s, 1, 0, Operands{B: b, C: c, Values: values}), s.Wait(background)); err != nil {
			t.Fatal(err)
		}
		got := p.newC()
		if err := c.Buffer.Read(background, got.Data); err != nil {
			t.Fatal(err)
		}
		info := plan.Info()
		info.UnitRoundoff = 0x1p-53
		p.verify(t, engine, info, got)
		if err := errors.Join(plan.Close(), s.Close(), workspace.Close(), memory.Close()); err != nil {
			t.Fatal(err)
		}
	})
}

// The check sees an error that sums of B's type do not have.
func TestMixedCheck(t *testing.T) {
	engine := newEngine(t, CPU)
	p := newProduct[float64, int32](shape{rows: 60, cols: 90, n: 9, blockM: 6, blockK: 5, density: 0.4, alpha: 0.5, seed: 6, typeA: BF16})
	c, info := p.run(t, engine, false)
	p.verify(t, engine, info, c)
	c.Data[3*c.Stride+4] += 1e-11
	if report, err := p.check(engine, p.checkArgs(c, info)); !errors.Is(err, ErrCheckFailed) || report.Failures != 1 || report.FirstRow != 3 || report.FirstCol != 4 {
		t.Errorf("%+v, %v", report, err)
	}
	q := newProduct[float32, int32](shape{rows: 60, cols: 90, n: 9, blockM: 6, blockK: 5, density: 0.4, alpha: 0.5, seed: 6, typeA: FP16})
	d, info := q.run(t, engine, false)
	d.Data[3*d.Stride+4] += 1e-3
	if report, err := q.check(engine, q.checkArgs(d, info)); !errors.Is(err, ErrCheckFailed) || report.Failures != 1 || report.FirstRow != 3 || report.FirstCol != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestMixedFaults(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		matrix := must(NewMatrix(t.Context(), engine, small()))(t)
		defer matrix.Close()
		for _, fault := range []struct {
			options  PlanOptions
			speaksOf string
		}{
			{PlanOptions{DTypeB: FP16}, "B is of A's type or of a wider one"},
			{PlanOptions{DTypeB: 9}, "options->dtype_b = 9 is none of"},
			{PlanOptions{DTypeB: FP64, Output: FP32}, "C is of SPARSEK_FP64 (4) where B is"},
			{PlanOptions{DTypeB: FP32, Output: FP64}, "and only then"},
		} {
			fault.options.N = 8
			_, err := matrix.Plan(t.Context(), fault.options)
			wantFault(t, err, ErrUnsupportedDType, fault.speaksOf)
		}
		if engine.Info().Backend == CUDA {
			_, err := matrix.Plan(t.Context(), PlanOptions{N: 8, DTypeB: FP32, Kernel: "few_columns_bf16"})
			wantFault(t, err, ErrNoSuchKernel, "another type")
		}
		plan := must(matrix.Plan(t.Context(), PlanOptions{N: 8, DTypeB: FP32}))(t)
		defer plan.Close()
		b, c := Dense[BFloat16]{Rows: matrix.Cols(), Cols: 8, Data: make([]BFloat16, matrix.Cols()*8)}, Dense[float32]{Rows: matrix.Rows(), Cols: 8, Data: make([]float32, matrix.Rows()*8)}
		wantFault(t, plan.Multiply(t.Context(), 1, 0, Operands{B: b, C: c}), ErrBadArgument, "B is of bf16 where the plan takes fp32")

		for _, other := range []PlanOptions{{Op: DSDT}, {Op: DDS}, {Op: SDD}, {OrderB: ColumnMajor}, {OrderC: ColumnMajor}} {
			other.N, other.DTypeB = 8, FP64
			_, err := matrix.Plan(t.Context(), other)
			wantFault(t, err, ErrUnsupportedDType, "is served by SPARSEK_DSD (0) of row-major operands alone")
		}

		single := must(NewMatrix(t.Context(), engine, newProduct[float32, int32](shape{rows: 8, cols: 8, n: 8, blockM: 4, blockK: 4, density: 1}).a))(t)
		defer single.Close()
		_, err := single.Plan(t.Context(), PlanOptions{N: 8, DTypeB: FP64, Compute: TF32})
		wantFault(t, err, ErrBadArgument, "for matrices of fp32, with B of fp32")
	})
}
