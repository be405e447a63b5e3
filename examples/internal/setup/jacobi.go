// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Single is a with its values rounded to float32.
func Single(a bsr.Matrix[float64]) bsr.Matrix[float32] {
	m := bsr.Matrix[float32]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, Pattern: a.Pattern, Values: make([]float32, len(a.Values))}
	for i, v := range a.Values {
		m.Values[i] = float32(v)
	}
	return m
}

// BlockJacobi is the inverse of the diagonal blocks of a, as a block-diagonal matrix: applied to a residual it is the
// block Jacobi preconditioner.
func BlockJacobi(a bsr.Matrix[float64]) (bsr.Matrix[float64], error) {
	size := a.BlockM
	if a.BlockK != size || a.Rows != a.Cols || a.Rows%size != 0 {
		return bsr.Matrix[float64]{}, fmt.Errorf("%d x %d in blocks of %d x %d has no square blocks on its diagonal", a.Rows, a.Cols, size, a.BlockK)
	}
	m := bsr.Matrix[float64]{Rows: a.Rows, Cols: a.Cols, BlockM: size, BlockK: size, Values: make([]float64, a.Rows*size),
		Pattern: bsr.Pattern{BlockRows: a.BlockRows, BlockCols: a.BlockCols, RowPtr: make([]int32, a.BlockRows+1), ColIdx: make([]int32, a.BlockRows)}}
	area := size * size
	for r := range a.BlockRows {
		found := false
		for i := a.RowPtr[r]; i < a.RowPtr[r+1]; i++ {
			if int(a.ColIdx[i]) != r {
				continue
			}
			found = true
			inverse := mat.NewDense(size, size, m.Values[r*area:][:area])
			if err := inverse.Inverse(mat.NewDense(size, size, a.Values[int(i)*area:][:area])); err != nil {
				return bsr.Matrix[float64]{}, fmt.Errorf("inverting block %d of the diagonal: %w", r, err)
			}
		}
		if !found {
			return bsr.Matrix[float64]{}, fmt.Errorf("block %d of the diagonal is not stored", r)
		}
		m.RowPtr[r+1], m.ColIdx[r] = int32(r)+1, int32(r)
	}
	return m, nil
}
