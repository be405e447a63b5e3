// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

func testFewBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	const blockRows, blockCols = 6, 5
	for name, row := range map[string]struct {
		at   int
		cols []int32
	}{
		"no block":                   {0, nil},
		"one block":                  {4, []int32{3}},
		"the last block":             {blockRows - 1, []int32{blockCols - 1}},
		"one full row":               {2, []int32{0, 1, 2, 3, 4}},
		"one full row, the last one": {blockRows - 1, []int32{0, 1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, beta := range []float32{0, 0.5} {
				p := newProduct[T, int32](shape{rows: blockRows*blockM - blockM/3, cols: blockCols*blockK - blockK/3, n: 264, blockM: blockM, blockK: blockK,
					alpha: 1.5, beta: beta, seed: 31, kernel: kernel.Name})
				pattern := make([][]int32, blockRows)
				pattern[row.at] = row.cols
				next := 0
				p.setPattern(pattern, func() T { next++; return FromFloat32[T](float32(next%31-15) / 8) })
				p.poison()
				for _, onDevice := range []bool{false, true} {
					c, info := p.run(t, engine, onDevice)
					p.verify(t, engine, info, c)
				}
			}
		})
	}
}

// Matrices of almost nothing: block rows without blocks are beta C, whatever the rest of their tile holds.
func TestFewBlocks(t *testing.T) {
	onEachKernel(t, testFewBlocks[BFloat16], testFewBlocks[Float16], testFewBlocks[float32], testFewBlocks[float64])
}

func testNoColumns[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	for _, n := range []int{1, 8, 20} {
		p := newProduct[T, int32](shape{rows: 3*blockM - blockM/3, cols: 0, n: n, blockM: blockM, blockK: blockK,
			alpha: 1.5, beta: 0.5, seed: 32, kernel: kernel.Name})
		for _, onDevice := range []bool{false, true} {
			c, info := p.run(t, engine, onDevice)
			p.verify(t, engine, info, c)
		}
	}
}

// A without columns: C = beta C. B has no rows then, also for kernels that copy B where its rows are not aligned.
func TestNoColumns(t *testing.T) {
	onEachKernel(t, testNoColumns[BFloat16], testNoColumns[Float16], testNoColumns[float32], testNoColumns[float64])
}
