// SPDX-License-Identifier: Apache-2.0

package native

// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Make says which function makes a pattern.
type Make int32

// The functions.
const (
	FromMask      Make = C.SHIM_FROM_MASK
	FromTopK      Make = C.SHIM_FROM_TOPK
	FromDense     Make = C.SHIM_FROM_DENSE
	FromCSR       Make = C.SHIM_FROM_CSR
	FromBlocks    Make = C.SHIM_FROM_BLOCKS
	FromCounts    Make = C.SHIM_FROM_COUNTS
	BlockDiagonal Make = C.SHIM_BLOCK_DIAGONAL
	Transposed    Make = C.SHIM_TRANSPOSE
	ToCSR         Make = C.SHIM_TO_CSR
)

// PatternArgs is sparsek_pattern_args, of arrays that are not Go's. What there is not is 0.
type PatternArgs struct {
	Rows, Cols, BlockM, BlockK, Capacity      int
	DType, IndexType, Memory                  int32
	Bits                                      bool
	RowPtr, ColIdx, Values, BlockIdx, RowIdx  unsafe.Pointer
	Blocks, Fault                             unsafe.Pointer
	Source                                    unsafe.Pointer
	Stride                                    int
	SourceDType, SourceIndexType, Order, Norm int32
	Threshold                                 float64
	Count                                     int
	Norms, Bins                               unsafe.Pointer
	From                                      []BSR
	Stream                                    uintptr
}

// MakePattern calls pattern_from_mask or another one of the functions that make patterns.
func (l *Library) MakePattern(op string, context unsafe.Pointer, what Make, p PatternArgs) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	args := C.sparsek_pattern_args{
		rows: C.int64_t(p.Rows), cols: C.int64_t(p.Cols), block_m: C.int64_t(p.BlockM), block_k: C.int64_t(p.BlockK),
		capacity: C.int64_t(p.Capacity), dtype: C.int32_t(p.DType), index_type: C.int32_t(p.IndexType), memory: C.int32_t(p.Memory),
		row_ptr: p.RowPtr, col_idx: p.ColIdx, values: p.Values, block_idx: p.BlockIdx, row_idx: p.RowIdx,
		blocks: (*C.int64_t)(p.Blocks), fault: (*C.int64_t)(p.Fault), source: p.Source, ld: C.int64_t(p.Stride),
		source_dtype: C.int32_t(p.SourceDType), source_index_type: C.int32_t(p.SourceIndexType), order: C.int32_t(p.Order),
		norm: C.int32_t(p.Norm), threshold: C.double(p.Threshold), count: C.int64_t(p.Count), norms: p.Norms, bins: p.Bins,
	}
	if p.Bits {
		args.flags = C.SPARSEK_PATTERN_BITS
	}
	from := make([]C.sparsek_bsr, len(p.From))
	for i := range p.From {
		from[i] = p.From[i].c(&pins)
	}
	return end(op, C.shim_make_pattern(l.api, (*C.sparsek_context)(context), C.int32_t(what), unsafe.SliceData(from), C.int32_t(len(from)),
		&args, C.uintptr_t(p.Stream)))
}

// PatternCheck calls pattern_check.
func (l *Library) PatternCheck(context unsafe.Pointer, a BSR, fault unsafe.Pointer) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	raw := a.c(&pins)
	return end("check index", C.shim_pattern_check(l.api, (*C.sparsek_context)(context), &raw, C.uintptr_t(a.Stream), (*C.int64_t)(fault)))
}

// Work says which function works on values.
type Work int32

// The functions.
const (
	ToDense        Work = C.SHIM_TO_DENSE
	GatherValues   Work = C.SHIM_GATHER
	BlockNorms     Work = C.SHIM_NORMS
	SumRows        Work = C.SHIM_SUM
	ScaleValues    Work = C.SHIM_SCALE
	MultiplyValues Work = C.SHIM_MULTIPLY_VALUES
	AddValues      Work = C.SHIM_ADD_VALUES
)

// ValuesArgs is sparsek_values_args, of arrays that are not Go's. What there is not is 0.
type ValuesArgs struct {
	A                         BSR
	Out, B                    unsafe.Pointer
	Stride                    int
	Order, Norm               int32
	Transposed                bool
	RowFactors, ColumnFactors unsafe.Pointer
	Alpha, Beta               float64
}

// WorkOnValues calls to_dense or another one of the functions that work on values.
func (l *Library) WorkOnValues(op string, context unsafe.Pointer, what Work, v ValuesArgs) error {
	var pins runtime.Pinner
	defer pins.Unpin()
	a := v.A.c(&pins)
	args := C.sparsek_values_args{out: v.Out, b: v.B, ld: C.int64_t(v.Stride), order: C.int32_t(v.Order), norm: C.int32_t(v.Norm),
		row_factors: v.RowFactors, column_factors: v.ColumnFactors, alpha: C.double(v.Alpha), beta: C.double(v.Beta)}
	if v.Transposed {
		args.transposed = 1
	}
	pins.Pin(&a) // args points to it
	return end(op, C.shim_work_on_values(l.api, (*C.sparsek_context)(context), C.int32_t(what), &a, &args, C.uintptr_t(v.A.Stream)))
}
