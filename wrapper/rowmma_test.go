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

// Blocks of up to 32 x 32, long rows, short ones, and rows without blocks.
func TestRowMMA(t *testing.T) {
	onRowMMA(t, testSmallBlocks[BFloat16], testSmallBlocks[Float16], testSmallBlocks[float32], testSmallBlocks[float64])
}

// Larger blocks: of so many rows that CTAs share them, or wide ones.
func drawLargeBlocks(t *rapid.T, kernel Kernel) shape {
	s := shape{kernel: kernel.Name}
	s.blockM = rapid.OneOf(rapid.IntRange(33, 256), rapid.SampledFrom([]int{48, 64, 96, 128, 256}), rapid.IntRange(1, 32)).Draw(t, "block height")
	s.blockK = rapid.OneOf(rapid.IntRange(1, 256), rapid.Just(s.blockM)).Draw(t, "block width")
	return drawSmallExtents(t, s)
}

func testLargeBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	testBlocks[T](t, engine, kernel, drawLargeBlocks)
}

func TestRowMMALargeBlocks(t *testing.T) {
	onRowMMA(t, testLargeBlocks[BFloat16], testLargeBlocks[Float16], testLargeBlocks[float32], testLargeBlocks[float64])
}

// largeBlocks are of rows that CTAs share in slices of 16 and of 32.
var largeBlocks = []shape{
	{rows: 500, cols: 640, n: 72, blockM: 48, blockK: 40, density: 0.5, alpha: 1, seed: 38},
	{rows: 500, cols: 640, n: 72, blockM: 96, blockK: 80, density: 0.5, alpha: 1, seed: 39},
}

func testSlicesByFewWorkers[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, s := range largeBlocks {
		s.kernel = kernel.Name
		for _, workers := range []int{1, 3} {
			testByWorkers[T](t, engine, s, workers)
		}
	}
}

// A CTA has slices of several block rows, one after the other.
func TestRowMMASlicesByFewWorkers(t *testing.T) {
	onRowMMA(t, testSlicesByFewWorkers[BFloat16], testSlicesByFewWorkers[Float16], testSlicesByFewWorkers[float32], testSlicesByFewWorkers[float64])
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
	skip := func(*testing.T, *Engine, Kernel) {}
	onRowMMA(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		for _, s := range []shape{
			{rows: 3000, cols: 2000, blockM: 12, blockK: 10, density: 0.5, seed: 37},
			{rows: 9600, cols: 2000, blockM: 48, blockK: 40, density: 0.3, seed: 40},
		} {
			s.kernel = kernel.Name
			testBatchInvariant(t, engine, s)
		}
	}, skip, skip, skip)
}
