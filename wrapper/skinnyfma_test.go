// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// onSkinnyFMA runs a test on the kernels for few columns of fp32 and fp64.
func onSkinnyFMA(t *testing.T, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	skip := func(*testing.T, *Engine, Kernel) {}
	onFamily(t, "skinny_fp32_", skip, skip, fp32, fp64)
	onFamily(t, "skinny_fp64_", skip, skip, fp32, fp64)
}

func testSkinnyBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	rapid.Check(t, func(rt *rapid.T) {
		// Several rows of tiles of a block or several blocks of a tile; less than a unit of 128 bytes, and several.
		s := shape{blockM: kernel.BlockM * rapid.IntRange(1, 9).Draw(rt, "eights high"), kernel: kernel.Name}
		s.blockK = kernel.BlockKMultiple * rapid.IntRange(1, 40).Draw(rt, "vectors wide")
		extent := func(block, most int, name string) int {
			return rapid.IntRange(1, max(1, most/block)).Draw(rt, name)*block - rapid.IntRange(0, block-1).Draw(rt, name+" short of whole blocks")
		}
		s.rows, s.cols = extent(s.blockM, 500, "rows"), extent(s.blockK, 2000, "columns")
		s.n = rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 40)).Draw(rt, "n")
		s.density = rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(rt, "density")
		gap := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 4))
		s.gapB, s.gapC = gap.Draw(rt, "gap of B"), gap.Draw(rt, "gap of C")
		scalar := rapid.SampledFrom([]float32{0, 1, -0.5})
		s.alpha, s.beta = scalar.Draw(rt, "alpha"), scalar.Draw(rt, "beta")
		s.bias, s.activation = drawEpilogue(rt)
		s.seed = rapid.Uint64().Draw(rt, "seed")
		testKernelTo[T, T](rt, engine, s)
	})
}

// Blocks of every height and width that these kernels serve, by one column and by several panels of them.
func TestSkinnyFMA(t *testing.T) {
	onSkinnyFMA(t, testSkinnyBlocks[float32], testSkinnyBlocks[float64])
}

func testSkinnyColumns[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	const most = 18
	for _, block := range [][2]int{{8, 12}, {24, 40}, {64, 64}} {
		t.Run(fmt.Sprintf("%dx%d", block[0], block[1]), func(t *testing.T) {
			of := func(n int) Dense[T] {
				random := rand.New(rand.NewPCG(31, 2))
				p := newProduct[T, int32](shape{rows: 5 * block[0], cols: 30 * block[1], n: n, blockM: block[0], blockK: block[1], density: 0.6, alpha: 1, seed: 31, kernel: kernel.Name})
				for i := range p.a.Values {
					p.a.Values[i] = FromFloat32[T](float32(random.NormFloat64()))
				}
				for i := range p.b.Rows * most { // of most columns, the first n
					if v := FromFloat32[T](float32(random.NormFloat64())); i%most < n {
						p.b.Data[i/most*p.b.Stride+i%most] = v
					}
				}
				c, _ := p.run(t, engine, false)
				return c
			}
			all := of(most)
			for _, n := range []int{1, 3, 4, 8, 16} {
				few := of(n)
				for row := range few.Rows {
					if !slices.Equal(few.Data[row*few.Stride:][:n], all.Data[row*all.Stride:][:n]) {
						t.Fatalf("row %d by %d columns has other bits than by %d", row, n, most)
					}
				}
			}
		})
	}
}

// A column of C has the same bits, whatever columns are beside it.
func TestSkinnyFMAColumns(t *testing.T) {
	onSkinnyFMA(t, testSkinnyColumns[float32], testSkinnyColumns[float64])
}
