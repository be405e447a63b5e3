// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// onRowMMA runs a test on each kernel whose CTAs have a block row each.
func onRowMMA(t *testing.T, bf16, fp16, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	onFamily(t, "row_mma_", bf16, fp16, fp32, fp64)
}

// Every block that these kernels serve, long rows, short ones, and rows without blocks.
func TestRowMMA(t *testing.T) {
	onRowMMA(t, testSmallBlocks[BFloat16], testSmallBlocks[Float16], testSmallBlocks[float32], testSmallBlocks[float64])
}

// Blocks of so many rows that CTAs share them.
func drawTallBlocks(t *rapid.T, kernel Kernel) shape {
	s := shape{kernel: kernel.Name}
	s.blockM = rapid.OneOf(rapid.IntRange(33, 256), rapid.SampledFrom([]int{48, 64, 96, 128, 256})).Draw(t, "block height")
	s.blockK = rapid.OneOf(rapid.IntRange(1, 256), rapid.Just(s.blockM)).Draw(t, "block width")
	return drawSmallExtents(t, s)
}

func testTallBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	testBlocks[T](t, engine, kernel, drawTallBlocks)
}

func TestRowMMATallBlocks(t *testing.T) {
	onRowMMA(t, testTallBlocks[BFloat16], testTallBlocks[Float16], testTallBlocks[float32], testTallBlocks[float64])
}

func TestRowMMAOnDevice(t *testing.T) {
	onRowMMA(t, testSmallBlocksOnDevice[BFloat16], testSmallBlocksOnDevice[Float16], testSmallBlocksOnDevice[float32], testSmallBlocksOnDevice[float64])
}

// Values at addresses that are multiples of an element alone, which are loaded in smaller pieces.
func TestRowMMAValuesAnywhere(t *testing.T) {
	onRowMMA(t, testValuesAnywhere[BFloat16], testValuesAnywhere[Float16], testValuesAnywhere[float32], testValuesAnywhere[float64])
}

// The warps of a CTA go by the number of tiles, and so by the columns, unless sums must not depend on these. There are
// more block rows than SMs.
func TestRowMMABatchInvariant(t *testing.T) {
	s := shape{rows: 3000, cols: 2000, blockM: 12, blockK: 10, density: 0.5, seed: 37}
	skip := func(*testing.T, *Engine, Kernel) {}
	onRowMMA(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		s.kernel = kernel.Name
		testBatchInvariant(t, engine, s)
	}, skip, skip, skip)
}
