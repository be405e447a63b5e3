// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// drawFewTiles draws a product of few columns with so few and so long block rows that several CTAs share each.
func drawFewTiles(t *rapid.T) shape {
	s := shape{
		blockM: rapid.SampledFrom([]int{16, 32, 48, 64, 128}).Draw(t, "block height"),
		blockK: rapid.SampledFrom([]int{16, 32, 48, 64, 128}).Draw(t, "block width"),
		rows:   rapid.IntRange(1, 300).Draw(t, "rows"), cols: rapid.IntRange(1000, 4000).Draw(t, "cols"),
		n: rapid.IntRange(1, 64).Draw(t, "n"), density: rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "density"),
		seed: rapid.Uint64().Draw(t, "seed"), alpha: -0.5, beta: rapid.SampledFrom([]float32{0, 2}).Draw(t, "beta"),
	}
	s.gapB = (s.n+7)/8*8 - s.n
	s.bias, s.activation = drawEpilogue(t)
	return s
}

// The sums of the parts of a row are those of the row, and the same at any time.
func TestFewLongRows(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		rapid.Check(t, func(rt *rapid.T) {
			p := newProductTo[BFloat16, float32, int32](drawFewTiles(rt))
			if engine.Info().Backend == CUDA && p.a.BlockM%16 == 0 && p.a.BlockK%16 == 0 {
				p.kernel = "skinny_bf16_64_64" // whatever is chosen
			}
			c, info := p.run(rt, engine, true)
			p.verify(rt, engine, info, c)
			if again, _ := p.run(rt, engine, true); !slices.Equal(again.Data, c.Data) {
				rt.Fatalf("kernel %s gave other bits the second time", info.Kernel)
			}
		})
	})
}

// As many block rows as give each of them four CTAs, two, and one.
func TestTilesSharedAndNot(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, rows := range []int{33 * 64, 34 * 64, 66 * 64, 67 * 64} {
			p := newProduct[Float16, int64](shape{rows: rows, cols: 1100, n: 20, gapB: 4, blockM: 64, blockK: 64, density: 0.95, alpha: 1, seed: 4})
			if engine.Info().Backend == CUDA {
				p.kernel = "skinny_fp16_64_64"
			}
			c, info := p.run(t, engine, true)
			p.verify(t, engine, info, c)
		}
	})
}
