// SPDX-License-Identifier: Apache-2.0

package workload

import (
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/check"
)

// onHost are the operands of a product in host memory, without gaps, in the orders of its form.
type onHost[T sparsek.Element] struct {
	shape   Shape
	x, b, c []T
}

// parts is how many parts of a product checkPart knows: the block rows of op(A).
func parts[T sparsek.Element](f Form, a bsr.Matrix[T]) int {
	if f.Op == sparsek.DSDT || f.Op == sparsek.DDS {
		return a.BlockCols
	}
	return a.BlockRows
}

// CheckBlockRow compares the elements of block row r of C = A B with a float64 reference, where all of them would take
// too long; see package check. B and C have no gaps. The rows in the report count from the block row's first.
func CheckBlockRow[T sparsek.Element](lib *sparsek.Library, a bsr.Matrix[T], b, c []T, r int, unitRoundoff float64) (check.Report, error) {
	return checkPart(lib, a, Form{}, onHost[T]{shape: Shape{a.Rows, len(c) / max(1, a.Rows), a.Cols}, b: b, c: c}, r, unitRoundoff)
}

// checkPart compares what block row r of op(A) gives, where all of C would take too long, with a float64 reference; see
// package check. Of A^T that is block column r of A. The place of elements in the report counts from the part's first.
func checkPart[T sparsek.Element](lib *sparsek.Library, a bsr.Matrix[T], f Form, o onHost[T], r int, unitRoundoff float64) (check.Report, error) {
	s := o.shape
	extentB, extentC := f.ExtentB(s), f.ExtentC(s, len(a.Values), a.BlockK)
	var part sparsek.BSR[T, int32]
	var first, size int // along M, or K
	if f.Op == sparsek.DSDT || f.Op == sparsek.DDS {
		part = blockColumn(a, r)
		first, size = r*a.BlockK, part.Cols
	} else {
		part = blockRow(a, r)
		first, size = r*a.BlockM, part.Rows
	}
	args := check.Args{Op: f.Op, Alpha: 1, UnitRoundoff: unitRoundoff}
	args.B = window(o.b, extentB, f.OrderB, 0, 0, extentB)
	switch f.Op {
	case sparsek.SDD:
		args.X = window(o.x, f.ExtentX(s), f.OrderX, first, 0, Extent{size, s.N})
		args.C = window(o.c, extentC, sparsek.RowMajor, int(a.RowPtr[r])*a.BlockM, 0, Extent{len(part.ColIdx) * a.BlockM, a.BlockK})
	case sparsek.DDS, sparsek.DDST:
		args.C = window(o.c, extentC, f.OrderC, 0, first, Extent{extentC.Rows, size})
	default:
		args.C = window(o.c, extentC, f.OrderC, first, 0, Extent{size, extentC.Cols})
	}
	return check.Product(lib, part, args)
}

// blockRow is a block row of a as a matrix of its own.
func blockRow[T sparsek.Element](a bsr.Matrix[T], r int) sparsek.BSR[T, int32] {
	begin, end, size := a.RowPtr[r], a.RowPtr[r+1], a.BlockM*a.BlockK
	return sparsek.BSR[T, int32]{
		Rows: min(a.BlockM, a.Rows-r*a.BlockM), Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK,
		RowPtr: []int32{0, end - begin}, ColIdx: a.ColIdx[begin:end], Values: a.Values[int(begin)*size : int(end)*size],
	}
}

// blockColumn is a block column of a as a matrix of its own.
func blockColumn[T sparsek.Element](a bsr.Matrix[T], column int) sparsek.BSR[T, int32] {
	part := sparsek.BSR[T, int32]{
		Rows: a.Rows, Cols: min(a.BlockK, a.Cols-column*a.BlockK), BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: []int32{0},
	}
	size := a.BlockM * a.BlockK
	for r := range a.BlockRows {
		for i := a.RowPtr[r]; i < a.RowPtr[r+1]; i++ {
			if int(a.ColIdx[i]) == column {
				part.ColIdx = append(part.ColIdx, 0)
				part.Values = append(part.Values, a.Values[int(i)*size:][:size]...)
			}
		}
		part.RowPtr = append(part.RowPtr, int32(len(part.ColIdx)))
	}
	return part
}
