// SPDX-License-Identifier: Apache-2.0

package workload

import (
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// CheckBlockRow compares the elements of block row r of C = A B with a float64 reference, where all of them would take
// too long; see package check. The rows in the report count from the block row's first.
func CheckBlockRow[T sparsek.Element](lib *sparsek.Library, a bsr.Matrix[T], b, c matio.Dense[T], r int, unitRoundoff float64) (check.Report, error) {
	first := r * a.BlockM
	rows := min(a.BlockM, a.Rows-first)
	begin, end := a.RowPtr[r], a.RowPtr[r+1]
	size := a.BlockM * a.BlockK
	row := sparsek.BSR[T, int32]{
		Rows: rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK,
		RowPtr: []int32{0, end - begin}, ColIdx: a.ColIdx[begin:end], Values: a.Values[int(begin)*size : int(end)*size],
	}
	return check.Product(lib, row, check.Args{
		Alpha: 1, UnitRoundoff: unitRoundoff,
		B: sparsek.Dense[T]{Rows: b.Rows, Cols: b.Cols, Data: b.Data},
		C: sparsek.Dense[T]{Rows: rows, Cols: c.Cols, Data: c.Data[first*c.Cols : (first+rows)*c.Cols]},
	})
}
