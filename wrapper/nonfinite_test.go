// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// nonFinite are ways in which NaN and Inf lie in B, (k, n): each returns what to put at a place, or 0 to leave it. Tiles
// that meet them are computed again for a few columns or all, and their sums become NaN at once, late or never.
var nonFinite = map[string]func(random *rand.Rand, k, n int) func(row, col int) float64{
	"an Inf": func(random *rand.Rand, k, n int) func(row, col int) float64 {
		atRow, atCol := random.IntN(k), random.IntN(n)
		return func(row, col int) float64 { return choose(row == atRow && col == atCol, math.Inf(1)) }
	},
	"an Inf in each 256 columns": func(random *rand.Rand, k, _ int) func(row, col int) float64 {
		atRow := random.IntN(k)
		return func(row, col int) float64 { return choose(row == atRow && col%256 == 0, math.Inf(-1)) }
	},
	"a row": func(random *rand.Rand, k, _ int) func(row, col int) float64 {
		atRow := random.IntN(k)
		return func(row, col int) float64 { return choose(row == atRow, math.Inf(1-2*(col&1))) }
	},
	"columns": func(random *rand.Rand, _, n int) func(row, col int) float64 {
		first, other := random.IntN(n), random.IntN(n)
		return func(_, col int) float64 { return choose(col == first, math.NaN()) + choose(col == other, math.Inf(-1)) }
	},
	"everywhere": func(*rand.Rand, int, int) func(row, col int) float64 {
		return func(int, int) float64 { return math.NaN() }
	},
	"Inf everywhere": func(*rand.Rand, int, int) func(row, col int) float64 {
		return func(int, int) float64 { return math.Inf(1) }
	},
	"Inf of each sign everywhere": func(random *rand.Rand, _, _ int) func(row, col int) float64 {
		return func(int, int) float64 { return math.Inf(1 - 2*random.IntN(2)) }
	},
	"here and there": func(random *rand.Rand, _, _ int) func(row, col int) float64 {
		values := []float64{math.Inf(1), math.Inf(-1), math.NaN()}
		return func(int, int) float64 { return choose(random.IntN(20) == 0, values[random.IntN(3)]) }
	},
}

func choose(condition bool, value float64) float64 {
	if condition {
		return value
	}
	return 0
}

// put replaces the elements of B where value returns something.
func (p *product[T, C, I]) put(value func(row, col int) float64) {
	p.infinite = true
	for row := range p.b.Rows {
		for col := range p.n {
			if v := value(row, col); v != 0 {
				p.b.Data[row*p.b.Stride+col] = FromFloat32[T](float32(v))
			}
		}
	}
}

// putInA makes A's elements positive, but for zeros and Inf here and there.
func (p *product[T, C, I]) putInA(random *rand.Rand) {
	for i := range p.a.Values {
		x := math.Abs(exactly(p.a.Values[i]))
		if x == 0 {
			continue // behind A's columns, or so by chance
		}
		switch random.IntN(400) {
		case 0:
			x = 0
		case 1:
			x = math.Inf(1)
		}
		p.a.Values[i] = FromFloat32[T](float32(x))
	}
}

// nonFiniteBlocks are blocks for a kernel: for the kernel that multiplies absent blocks as zeros, those whose slots have 8
// to 128 rows, and whose widths are whole steps of the tensor cores, or end half way in one.
func nonFiniteBlocks(kernel Kernel) [][2]int {
	if strings.HasPrefix(kernel.Name, "gather_") {
		return [][2]int{{8, 8}, {8, 16}, {16, 24}, {16, 48}, {24, 24}, {32, 16}, {48, 48}, {64, 40}, {512, 112}}
	}
	if strings.HasPrefix(kernel.Name, "planes_") {
		return [][2]int{{8, 32}, {24, 32}, {32, 32}, {64, 64}, {96, 32}, {192, 64}}
	}
	if strings.HasPrefix(kernel.Name, "dmma_") {
		return [][2]int{{8, 8}, {24, 40}, {48, 16}}
	}
	if isSkinnyFMA(kernel) { // one slot of 16 rows, or two of 8; rows of several units, and of parts of one
		return [][2]int{{8, 4}, {16, 16}, {24, 40}, {64, 72}}
	}
	if strings.HasPrefix(kernel.Name, "planes16_") {
		return [][2]int{{8, 16}, {16, 16}, {16, 48}, {96, 16}, {128, 16}}
	}
	if strings.HasPrefix(kernel.Name, "packed_fp64_") || strings.HasPrefix(kernel.Name, "packed_fp32_") { // rows of a block in two tiles, columns in two strips
		return [][2]int{{1, 1}, {2, 2}, {3, 5}, {4, 4}, {7, 12}, {33, 40}, {64, 64}}
	}
	if strings.HasPrefix(kernel.Name, "packed_") { // 1 to 4 slots of a warp's rows, stages of 2 to 4 units
		return [][2]int{{4, 1}, {4, 4}, {8, 8}, {12, 12}, {20, 7}, {32, 32}, {64, 48}}
	}
	if strings.HasPrefix(kernel.Name, "scatter_") { // stages of 64 columns, and of fewer; rows of a block in two tiles
		return [][2]int{{1, 1}, {2, 2}, {3, 5}, {4, 4}, {7, 12}, {8, 8}, {33, 40}, {64, 64}}
	}
	blockM, blockK := leastBlock(kernel)
	return [][2]int{{blockM, blockK}}
}

func testNonFinite[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range nonFiniteBlocks(kernel) {
		s := shape{rows: block[0] + 100, cols: max(5, 600/block[1]) * block[1], n: 264, blockM: block[0], blockK: block[1], density: 0.4, alpha: -1, beta: 0.5,
			kernel: kernel.Name}
		testEachNonFinite[T](t, engine, s, 0)
	}
}

// testEachNonFinite multiplies with each kind of B. workers: as in PlanOptions.
func testEachNonFinite[T Element](t *testing.T, engine *Engine, s shape, workers int) {
	for name, of := range nonFinite {
		t.Run(fmt.Sprintf("%dx%d, %s", s.blockM, s.blockK, name), func(t *testing.T) {
			s.seed = uint64(s.blockM + len(name))
			p := newProduct[T, int32](s)
			p.put(of(rand.New(rand.NewPCG(s.seed, 1)), s.cols, s.n))
			m := must(NewMatrix(context.Background(), engine, p.a))(t)
			defer m.Close()
			options := p.planOptions(16)
			options.Workers = workers
			plan := must(m.Plan(context.Background(), options))(t)
			defer plan.Close()
			operands := p.operands(p.b, p.c0, p.bias)
			for i := range 3 { // what a product leaves in the plan's memory is none of the next one's business
				c := p.newC()
				operands.C = c
				if i == 2 { // kernels then read them as they are, and not as the plan keeps them
					if kept := plan.Info().KeptBytes; kept == 0 || len(p.a.Values) == 0 {
						if kept == 0 && strings.HasPrefix(s.kernel, "scatter_") {
							t.Fatal("a plan of a matrix from the host keeps nothing")
						}
						break
					}
					operands.Values = Dense[T]{Rows: len(p.a.Values) / s.blockK, Cols: s.blockK, Data: p.a.Values}
				}
				if err := plan.Multiply(context.Background(), p.alpha, p.beta, operands); err != nil {
					t.Fatal(err)
				}
				p.verify(t, engine, plan.Info(), c)
			}
		})
	}
}

// Inf and NaN in B reach the elements of C that blocks bring them to, and no others.
func TestNonFinite(t *testing.T) {
	onEachKernel(t, testNonFinite[BFloat16], testNonFinite[Float16], testNonFinite[float32], testNonFinite[float64])
}

func testNonFiniteInBoth[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range nonFiniteBlocks(kernel) {
		for name, of := range nonFinite {
			t.Run(fmt.Sprintf("%dx%d, %s", block[0], block[1], name), func(t *testing.T) {
				// The last block column ends behind A, and the last group of columns behind C.
				s := shape{rows: 3*block[0] + 100, cols: max(5, 300/block[1])*block[1] - block[1]/2, n: 259, gapB: 5, gapC: 5, blockM: block[0], blockK: block[1],
					density: 0.4, alpha: 1, kernel: kernel.Name, seed: uint64(block[0] + len(name))}
				p := newProduct[T, int32](s)
				random := rand.New(rand.NewPCG(s.seed, 2))
				p.putInA(random)
				p.put(of(random, s.cols, s.n))
				c, info := p.run(t, engine, true)
				p.verify(t, engine, info, c)
			})
		}
	}
}

// A without negative numbers, so that sums of Inf of one sign stay Inf, with zeros in blocks, which make them NaN, and
// with Inf.
func TestNonFiniteInBoth(t *testing.T) {
	onFamily(t, "packed_", testNonFiniteInBoth[BFloat16], testNonFiniteInBoth[Float16], testNonFiniteInBoth[float32], testNonFiniteInBoth[float64])
	onFamily(t, "scatter_", testNonFiniteInBoth[BFloat16], testNonFiniteInBoth[Float16], nil, nil)
}

func testNonFiniteManyTiles[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range [][2]int{{8, 8}, {16, 16}, {48, 24}} {
		testEachNonFinite[T](t, engine, shape{rows: 264, cols: 25 * block[1], n: 520, blockM: block[0], blockK: block[1], density: 0.3, alpha: 1, kernel: kernel.Name}, 3)
	}
}

// CTAs that have many tiles each, of which some or all are computed again.
func TestNonFiniteManyTiles(t *testing.T) {
	onSplitting(t, testNonFiniteManyTiles[BFloat16], testNonFiniteManyTiles[Float16])
}

func testNonFiniteParts[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range [][2]int{{8, 8}, {16, 16}, {24, 40}} {
		testEachNonFinite[T](t, engine, longRows(kernel, block, 72), 0)
	}
}

// Tiles in parts, each of which is computed again by itself.
func TestNonFiniteParts(t *testing.T) {
	onSplitting(t, testNonFiniteParts[BFloat16], testNonFiniteParts[Float16])
}

func testNonFiniteWideBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, of := range []struct{ blockM, blockK, count int }{{16, 512, 1}, {16, 464, 1}, {8, 256, 2}, {64, 152, 3}} {
		testEachNonFinite[T](t, engine, shape{rows: 264, cols: of.count * of.blockK, n: 264, blockM: of.blockM, blockK: of.blockK,
			density: 0.6, alpha: 1, kernel: kernel.Name}, 0)
	}
}

// Tiles of a few wide blocks, whose second walk has nothing to share out.
func TestNonFiniteWideBlocks(t *testing.T) {
	onSplitting(t, testNonFiniteWideBlocks[BFloat16], testNonFiniteWideBlocks[Float16])
}

// One CTA with many tiles, most of which meet NaN.
func TestNonFiniteRounds(t *testing.T) {
	engine := newEngine(t, CUDA)
	s := shape{rows: 200*128 + 8, cols: 40, n: 8, blockM: 8, blockK: 8, density: 0.5, alpha: 1, kernel: "gather_bf16_128_256", seed: 3}
	p := newProduct[BFloat16, int32](s)
	p.put(func(row, col int) float64 { return choose(row == 3 && col == 5, math.NaN()) })
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	options := p.planOptions(16)
	options.Workers = 1
	plan := must(m.Plan(context.Background(), options))(t)
	defer plan.Close()
	c := p.newC()
	if err := plan.Multiply(context.Background(), p.alpha, p.beta, p.operands(p.b, c, p.bias)); err != nil {
		t.Fatal(err)
	}
	p.verify(t, engine, plan.Info(), c)
	if again := must(plan.Recomputed(context.Background()))(t); again == 0 {
		t.Error("no slab was computed again")
	}
}
