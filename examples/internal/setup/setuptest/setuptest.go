// SPDX-License-Identifier: Apache-2.0

// Package setuptest is for the tests of the example programs.
package setuptest

import (
	"errors"
	"testing"

	"github.com/sparsek/sparsek/examples/internal/setup"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// OnEachDevice runs a test on the CPU and on the GPU, and skips what is not there. Nobody's measurements are read.
func OnEachDevice(t *testing.T, test func(t *testing.T, device string)) {
	t.Setenv("SPARSEK_TUNING_CACHE", "off")
	for _, device := range []string{"cpu", "cuda"} {
		t.Run(device, func(t *testing.T) {
			engine, err := setup.Engine(device)
			switch {
			case errors.Is(err, sparsek.ErrLibraryNotFound):
				t.Skip("skipped: libsparsek.so not found")
			case errors.Is(err, sparsek.ErrNoDevice):
				t.Skip("skipped: no GPU")
			case err != nil:
				t.Fatal(err)
			}
			engine.Close()
			test(t, device)
		})
	}
}

// Multiply is A by the columns of x, row-major (Cols, columns), element by element.
func Multiply[T sparsek.Element](a bsr.Matrix[T], x []float64, columns int) []float64 {
	y := make([]float64, a.Rows*columns)
	for r := range a.BlockRows {
		for i := a.RowPtr[r]; i < a.RowPtr[r+1]; i++ {
			for e, v := range a.Values[int(i)*a.BlockM*a.BlockK:][:a.BlockM*a.BlockK] {
				row, col := r*a.BlockM+e/a.BlockK, int(a.ColIdx[i])*a.BlockK+e%a.BlockK
				if row >= a.Rows || col >= a.Cols {
					continue
				}
				for j := range columns {
					y[row*columns+j] += value(v) * x[col*columns+j]
				}
			}
		}
	}
	return y
}

func value[T sparsek.Element](x T) float64 {
	if v, ok := any(x).(float64); ok {
		return v
	}
	return float64(sparsek.ToFloat32(x))
}
