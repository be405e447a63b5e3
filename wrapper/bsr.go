// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"math/bits"

	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// BSR is a block compressed sparse row matrix of Rows x Cols in blocks of BlockM x BlockK. Package bsr makes them of CSR,
// COO and dense arrays, package matio of files; [BSROf] takes what they make.
//
// Where Rows or Cols is no multiple of the block, the blocks at the border extend beyond it: what they hold below
// the last row is never used, and what they hold right of the last column must be zero.
type BSR[T Element, I Index] struct {
	Rows, Cols     int // M, K
	BlockM, BlockK int
	RowPtr         []I // (ceil(M/BlockM) + 1): block row r has the blocks RowPtr[r] to RowPtr[r+1]-1
	ColIdx         []I // (blocks): block columns, strictly increasing within a block row
	Values         []T // (blocks, BlockM, BlockK), row-major; nil: set later by SetValues, or given with each product

	// BlockIdx (blocks) says which block of Values each entry of ColIdx names; nil: 0, 1 and so on.
	BlockIdx []I
	// Unsorted allows block columns in any order within a block row. They are sorted while they are copied; Values stay
	// as they are.
	Unsorted bool
	// Frozen promises that values which [SetDeviceValues] gives are not written to in place. So a GPU's plans keep them
	// packed, as they do Values. After a write to the buffer, another SetDeviceValues packs them again.
	Frozen bool
}

// DeviceBSR is a [BSR] in device memory.
type DeviceBSR[T Element, I Index] struct {
	Rows, Cols     int
	BlockM, BlockK int
	RowPtr, ColIdx *DeviceBuffer[I] // of exactly the length
	Values         *DeviceBuffer[T] // of exactly the length; nil: set later by SetDeviceValues
	// Bound: ColIdx and Values have room for more blocks than there are. The last element of RowPtr says how many there
	// are, and what is behind them is not used.
	Bound bool
	// BlockIdx and Unsorted are as in [BSR]; BlockIdx is of exactly the length, and nil with Bound.
	BlockIdx *DeviceBuffer[I]
	Unsorted bool
	// Frozen is as in [BSR], of Values too. It is for [NewDeviceMatrix].
	Frozen bool
}

// BSROf is a matrix of package bsr, in the types of this package. The arrays are the same.
func BSROf[T Element](m bsr.Matrix[T]) BSR[T, int32] {
	return BSR[T, int32]{Rows: m.Rows, Cols: m.Cols, BlockM: m.BlockM, BlockK: m.BlockK, RowPtr: m.RowPtr, ColIdx: m.ColIdx, Values: m.Values}
}

// lengths are those of a BSR matrix's arrays.
type lengths struct {
	rowPtr, colIdx, values int
	blockIdx               int
	noValues, noBlockIdx   bool
}

// checkLengths makes sure that the arrays are as long as the sizes say, which the library cannot see. Sizes that are
// wrong by themselves are left to it.
func checkLengths(op string, rows, blockM, blockK int, have lengths) error {
	if rows < 0 || blockM < 1 || blockK < 1 {
		return nil
	}
	blockRows := rows / blockM
	if rows%blockM != 0 {
		blockRows++
	}
	if have.rowPtr-1 != blockRows {
		return fault(op, ErrBadSize, "RowPtr has %d entries: %d rows in blocks of %d need %d + 1", have.rowPtr, rows, blockM, blockRows)
	}
	if !have.noBlockIdx && have.blockIdx != have.colIdx {
		return fault(op, ErrBadSize, "BlockIdx has %d entries and ColIdx has %d", have.blockIdx, have.colIdx)
	}
	if have.noValues {
		return nil
	}
	return checkValues(op, have.colIdx, blockM, blockK, have.values)
}

func checkValues(op string, blocks, blockM, blockK, have int) error {
	high, block := bits.Mul(uint(blockM), uint(blockK))
	over, need := bits.Mul(uint(blocks), block)
	if high != 0 || over != 0 || uint(have) != need {
		return fault(op, ErrBadSize, "Values has %d elements: %d blocks of %d x %d need %d * %d * %d",
			have, blocks, blockM, blockK, blocks, blockM, blockK)
	}
	return nil
}

// raw drops the types. The arrays stay the caller's.
func (a *BSR[T, I]) raw() native.BSR {
	return native.BSR{
		Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, Blocks: len(a.ColIdx),
		DType: int32(DTypeOf[T]()), IndexType: indexTypeOf[I](), Memory: native.Host,
		RowPtr: addressOf(a.RowPtr), ColIdx: addressOf(a.ColIdx), Values: addressOf(a.Values),
		BlockIdx: addressOf(a.BlockIdx), Unsorted: a.Unsorted,
	}
}

// indexTypeOf is C's number of I.
func indexTypeOf[I Index]() int32 {
	var zero I
	switch any(zero).(type) {
	case int16:
		return native.Int16
	case int32:
		return native.Int32
	}
	return native.Int64
}

// checked is raw where the arrays are as long as the sizes say.
func (a *BSR[T, I]) checked(op string) (native.BSR, error) { return a.raw(), a.check(op) }

func (a *BSR[T, I]) check(op string) error {
	return checkLengths(op, a.Rows, a.BlockM, a.BlockK,
		lengths{rowPtr: len(a.RowPtr), colIdx: len(a.ColIdx), values: len(a.Values), noValues: a.Values == nil,
			blockIdx: len(a.BlockIdx), noBlockIdx: a.BlockIdx == nil})
}
