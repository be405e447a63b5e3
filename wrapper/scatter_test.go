// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// scatterShapes are products whose stages, lists and tiles are of each kind: stages of 64 columns and of fewer, lists of
// no element, of some and of several parts, blocks in two tiles or stages, values between alignments, a K that ends
// within a block, tiles that are few and many.
var scatterShapes = []shape{
	{rows: 500, cols: 1000, n: 136, blockM: 1, blockK: 1, density: 0.125},
	{rows: 515, cols: 1177, n: 64, blockM: 1, blockK: 1, density: 0.01},
	{rows: 140, cols: 4100, n: 129, gapB: 7, gapC: 3, blockM: 1, blockK: 1, density: 0.3},
	{rows: 128, cols: 1100, n: 64, blockM: 1, blockK: 1, density: 1},
	{rows: 128, cols: 32000, n: 9, blockM: 2, blockK: 2, density: 0.002},
	{rows: 399, cols: 600, n: 161, blockM: 3, blockK: 3, density: 0.125},
	{rows: 300, cols: 700, n: 77, blockM: 5, blockK: 7, density: 0.1},
	{rows: 260, cols: 1283, n: 264, blockM: 4, blockK: 4, density: 0.2},
	{rows: 264, cols: 256, n: 1040, blockM: 8, blockK: 8, density: 0.125},
	{rows: 420, cols: 1020, n: 128, blockM: 12, blockK: 12, density: 0.2},
	{rows: 330, cols: 1000, n: 72, blockM: 33, blockK: 40, density: 0.2},
	{rows: 256, cols: 640, n: 200, blockM: 64, blockK: 64, density: 0.3},
}

func testScatter[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for i, s := range scatterShapes {
		// So many workers that tiles are shared where they are few, one, or some that share one tile or none.
		for _, workers := range []int{0, []int{1, 3}[i%2]} {
			t.Run(fmt.Sprintf("%dx%dx%d by %dx%d, %d workers", s.rows, s.n, s.cols, s.blockM, s.blockK, workers), func(t *testing.T) {
				s.kernel, s.seed, s.alpha = kernel.Name, uint64(i), 0.5
				if i%3 == 1 {
					s.beta = -2
				}
				testByWorkers[T](t, engine, s, workers)
			})
		}
	}
}

// testByWorkers multiplies by a plan with so many workers; 0: as many as there is room for.
func testByWorkers[T Element](t *testing.T, engine *Engine, s shape, workers int) {
	t.Helper()
	p := newProduct[T, int32](s)
	m := must(NewMatrix(t.Context(), engine, p.a))(t)
	defer m.Close()
	options := p.planOptions(16)
	options.Workers = workers
	plan := must(m.Plan(t.Context(), options))(t)
	defer plan.Close()
	c := p.newC()
	if err := plan.Multiply(t.Context(), p.alpha, p.beta, p.operands(p.b, c, p.bias)); err != nil {
		t.Fatal(err)
	}
	p.verify(t, engine, plan.Info(), c)
}

// Elements of every size of block reach their places in dense tiles, and C leaves them, by CTAs that have one tile and
// many.
func TestScatteredStages(t *testing.T) {
	onFamily(t, "scatter_", testScatter[BFloat16], testScatter[Float16], nil, nil)
	onFamily(t, "packed_fp32_", nil, nil, testScatter[float32], nil)
	onFamily(t, "packed_fp64_", nil, nil, nil, testScatter[float64])
}

func testScatteredNaN[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, of := range []struct{ blockM, blockK, rows int }{{1, 1, 264}, {33, 40, 264}, {8, 8, 28 * 128}} {
		testEachNonFinite[T](t, engine, shape{rows: of.rows, cols: 5*of.blockK + 20, n: 520, blockM: of.blockM, blockK: of.blockK, density: 0.3, alpha: 1, beta: -1, kernel: kernel.Name}, 1)
	}
}

// One CTA stores all tiles, those without NaN by TMA, from buffers that it has in turn. Of the last matrix it has more
// tiles than it can note in shared memory.
func TestScatteredNaNInManyTiles(t *testing.T) {
	onFamily(t, "scatter_", testScatteredNaN[BFloat16], testScatteredNaN[Float16], nil, nil)
	onFamily(t, "packed_fp32_", nil, nil, testScatteredNaN[float32], nil)
	onFamily(t, "packed_fp64_", nil, nil, nil, testScatteredNaN[float64])
}

func testSharedNaN[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range [][2]int{{1, 1}, {5, 3}} {
		testEachNonFinite[T](t, engine, shape{rows: 140, cols: 1100, n: 137, blockM: block[0], blockK: block[1], density: 0.2, alpha: 1, kernel: kernel.Name}, 0)
	}
}

// Several CTAs have a part of each tile, and each computes again what has NaN in its part.
func TestScatteredNaNInSharedTiles(t *testing.T) {
	onFamily(t, "scatter_", testSharedNaN[BFloat16], testSharedNaN[Float16], nil, nil)
}

// valuesOf are A's values, as an operand.
func valuesOf[T Element](p *product[T, T, int32]) Dense[T] {
	return Dense[T]{Rows: len(p.a.Values) / p.a.BlockK, Cols: p.a.BlockK, Data: p.a.Values}
}

func testScatteredNaNInBoth[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, cols := range []int{300, 1100} { // tiles of one CTA, and of several
		for name, of := range nonFinite {
			t.Run(fmt.Sprintf("%d columns, %s", cols, name), func(t *testing.T) {
				s := shape{rows: 140, cols: cols, n: 137, blockM: 1, blockK: 1, density: 0.2, alpha: 1, kernel: kernel.Name, seed: uint64(cols + len(name))}
				p := newProduct[T, int32](s)
				random := rand.New(rand.NewPCG(s.seed, 2))
				p.putInA(random)
				p.put(of(random, s.cols, s.n))
				m := must(NewMatrix(t.Context(), engine, p.a))(t)
				defer m.Close()
				plan := must(m.Plan(t.Context(), p.planOptions(16)))(t)
				defer plan.Close()
				for _, values := range []Operand{nil, valuesOf(p)} { // as the plan keeps them, and as they are
					c := p.newC()
					if err := plan.Multiply(t.Context(), p.alpha, p.beta, Operands{B: p.b, C: c, Values: values}); err != nil {
						t.Fatal(err)
					}
					p.verify(t, engine, plan.Info(), c)
				}
			})
		}
	}
}

// Zeros and Inf in A meet Inf and NaN in B, from stages that the plan keeps and from lists.
func TestScatteredNaNInBoth(t *testing.T) {
	onFamily(t, "scatter_", testScatteredNaNInBoth[BFloat16], testScatteredNaNInBoth[Float16], nil, nil)
}

func testScatteredZeros[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, cols := range []int{300, 1100} {
		p := newProduct[T, int32](shape{rows: 140, cols: cols, n: 72, blockM: 1, blockK: 1, density: 0.2, alpha: 1, kernel: kernel.Name})
		for i := range p.a.Values {
			p.a.Values[i] = FromFloat32[T](float32(math.Copysign(0, float64(1-i%3))))
		}
		m := must(NewMatrix(t.Context(), engine, p.a))(t)
		defer m.Close()
		plan := must(m.Plan(t.Context(), p.planOptions(16)))(t)
		defer plan.Close()
		for _, values := range []Operand{nil, valuesOf(p)} {
			c := p.newC()
			if err := plan.Multiply(t.Context(), p.alpha, p.beta, Operands{B: p.b, C: c, Values: values}); err != nil {
				t.Fatal(err)
			}
			for i := range p.a.Rows * p.n {
				if x := exactly(c.Data[i/p.n*c.Stride+i%p.n]); x != 0 || math.Signbit(x) {
					t.Fatalf("element %d of C is %v: sums of zeros are 0", i, x)
				}
			}
		}
	}
}

// Zeros of each sign in A, which kernels tell from absent elements by their sign, give 0.
func TestScatteredZeros(t *testing.T) {
	onFamily(t, "scatter_", testScatteredZeros[BFloat16], testScatteredZeros[Float16], nil, nil)
}

func testFewerColumnsWithNaN[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	p := newProduct[T, int32](shape{rows: 28 * 128, cols: 60, n: 520, blockM: 8, blockK: 8, density: 0.3, alpha: 1, kernel: kernel.Name})
	p.put(func(row, col int) float64 { return choose(row%7 == 3 && col%5 == 0, math.Inf(1)) })
	m := must(NewMatrix(t.Context(), engine, p.a))(t)
	defer m.Close()
	options := p.planOptions(16)
	options.Workers = 1
	plan := must(m.Plan(t.Context(), options))(t)
	defer plan.Close()
	for _, n := range []int{520, 64} {
		of := *p
		of.n, of.b.Cols, of.c0.Cols = n, n, n
		c := of.newC()
		if err := plan.Multiply(t.Context(), p.alpha, p.beta, Operands{B: of.b, C: c}); err != nil {
			t.Fatal(err)
		}
		of.verifyPlainly(t, plan.Info(), c)
	}
}

// A CTA notes NaN in device memory where it has many tiles, and in shared memory for a product of fewer columns.
func TestScatteredNaNByFewerColumns(t *testing.T) {
	onFamily(t, "scatter_", testFewerColumnsWithNaN[BFloat16], testFewerColumnsWithNaN[Float16], nil, nil)
}

func testScatteredPlans[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for i, s := range scatterShapes {
		t.Run(fmt.Sprintf("%dx%dx%d by %dx%d", s.rows, s.n, s.cols, s.blockM, s.blockK), func(t *testing.T) {
			s.kernel, s.seed, s.alpha = kernel.Name, uint64(i), 1
			comparePlans(t, engine, newProduct[T, int32](s))
		})
	}
}

// The lists of stages are the same of an index on the host and of one in device memory.
func TestScatteredPlansOnDevice(t *testing.T) {
	onFamily(t, "scatter_", testScatteredPlans[BFloat16], testScatteredPlans[Float16], nil, nil)
}

func testScatteredUpdates[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	background := context.Background()
	for _, block := range [][2]int{{1, 1}, {5, 3}} {
		// Of single elements tiles have so many stages that CTAs share them.
		blockRows, blockCols := 130, 1100
		if block[0] > 1 {
			blockRows, blockCols = 40, 60
		}
		sizes := shape{rows: blockRows * block[0], cols: blockCols * block[1], n: 100, blockM: block[0], blockK: block[1], alpha: 1}
		most := blockRows * blockCols
		s := must(engine.NewStream())(t)
		defer s.Close()
		values := must(NewBuffer[T](engine, most*block[0]*block[1]))(t)
		colIdx := must(NewBuffer[int32](engine, most))(t)
		rowPtr := must(NewBuffer[int32](engine, blockRows+1))(t)
		for _, err := range []error{rowPtr.Fill(background, 0), colIdx.Fill(background, 0xff), values.Fill(background, 0)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		a := DeviceBSR[T, int32]{Rows: sizes.rows, Cols: sizes.cols, BlockM: block[0], BlockK: block[1], RowPtr: rowPtr, ColIdx: colIdx, Values: values, Bound: true}
		m := must(NewDeviceMatrixIn(background, s, a))(t)
		defer m.Close()
		plan := must(m.Plan(background, PlanOptions{N: sizes.n, Kernel: kernel.Name}))(t)
		defer plan.Close()
		a.Values = nil
		for seed, density := range []float64{0.9, 0.001, 0.2, 1} {
			sizes.seed, sizes.density = uint64(seed), density
			p := newProduct[T, int32](sizes)
			b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
			columns := append(slices.Clone(p.a.ColIdx), make([]int32, most-len(p.a.ColIdx))...)
			full := append(slices.Clone(p.a.Values), make([]T, values.Len()-len(p.a.Values))...)
			if err := errors.Join(rowPtr.WriteAsync(s, p.a.RowPtr), colIdx.WriteAsync(s, columns), values.WriteAsync(s, full),
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
}

// The lists of stages are made again for each index that a plan gets, of many blocks and of few, and values are copied
// to the order of the last ones.
func TestScatteredUpdates(t *testing.T) {
	onFamily(t, "scatter_", testScatteredUpdates[BFloat16], testScatteredUpdates[Float16], nil, nil)
}
