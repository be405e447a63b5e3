// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// drawRows draws a product for the CPU's row functions. Every other one has one column without gaps, and blocks that end
// within K, which takes a way of its own.
func drawRows(t *rapid.T, kernel string) shape {
	s := drawSmallBlocks(t, Kernel{Name: kernel})
	if rapid.Bool().Draw(t, "tall") {
		s.blockM = rapid.IntRange(33, 150).Draw(t, "block height of tall ones")
		s.rows = rapid.IntRange(1, 300).Draw(t, "rows by tall blocks")
	}
	if rapid.Bool().Draw(t, "one column") {
		s.n, s.gapB = 1, 0
		s.cols = (s.cols + s.blockK - 1) / s.blockK * s.blockK
	}
	return s
}

func testRows[T, C Element](t *testing.T, engine *Engine, kernel string) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawRows(rt, kernel)
		if rapid.Bool().Draw(rt, "epilogue") {
			s.bias, s.activation = drawEpilogue(rt)
		}
		testProduct[T, C, int32](rt, engine, s)
	})
}

// Blocks of every small size, by few columns and one, with each kernel of the CPU that runs here.
func TestRowsOnCPU(t *testing.T) {
	engine := newEngine(t, CPU)
	for _, kernel := range kernels(t, engine) {
		t.Run(kernel, func(t *testing.T) {
			t.Run("bf16", func(t *testing.T) { testRows[BFloat16, BFloat16](t, engine, kernel) })
			t.Run("bf16 to fp32", func(t *testing.T) { testRows[BFloat16, float32](t, engine, kernel) })
			t.Run("fp16", func(t *testing.T) { testRows[Float16, Float16](t, engine, kernel) })
			t.Run("fp32", func(t *testing.T) { testRows[float32, float32](t, engine, kernel) })
			t.Run("fp64", func(t *testing.T) { testRows[float64, float64](t, engine, kernel) })
		})
	}
}
