// SPDX-License-Identifier: Apache-2.0
// Checks of arguments, shared by entry points. Each throws Error, naming the argument.
#pragma once

#include <cstdint>

#include "abi/dtype.h"
#include "sparsek.h"

namespace sparsek {

struct Matrix;  // abi/handles.h

// An element type.
void require_dtype(int32_t dtype, const char* what);
// Of B, where A is of `dtype`.
void require_dtype_b(int32_t dtype_b, int32_t dtype, const char* what);
// Where the types differ: SPARSEK_DSD of row-major operands.
void require_plain_where_mixed(OperandTypes types, int32_t op, int32_t order_b, int32_t order_c, const char* what);
// Of C, where B is of `dtype`.
void require_dtype_c(int32_t dtype_c, int32_t dtype, const char* what);
// Existing values of sparsek_bias and sparsek_activation.
void require_epilogue(int32_t bias, const char* bias_name, int32_t activation, const char* activation_name);
void require_not_null(const void* pointer, const char* what);
// The matrix has values: a pattern may be given before them, but a product needs them.
void require_values(const Matrix& matrix);
// An aligned pointer. Null passes.
void require_aligned(const void* pointer, int64_t alignment, const char* what);
// A finite factor, so that rows without blocks are beta * C with every kernel.
void require_finite(float value, const char* what);
// SPARSEK_HOST or SPARSEK_DEVICE.
sparsek_memory require_memory(int32_t memory, const char* what);
// SPARSEK_ROW_MAJOR or SPARSEK_COLUMN_MAJOR.
sparsek_order require_order(int32_t order, const char* what);

// A dense operand (rows, n):(ld, 1), or one whose columns are these rows: ld at least n, and its bytes within int64.
void require_dense(int64_t rows, int64_t n, int64_t ld, int64_t element_bytes, const char* ld_name);

// Two dense matrices in the same memory, rows of `width` bytes that begin `pitch` bytes apart. They do not overlap
// where one ends before the other begins, or where, with the same pitch, the rows of one lie in the gaps of the other.
struct ByteRows {
  const void* data;
  int64_t rows, width, pitch;
};
bool overlap(const ByteRows& a, const ByteRows& b);

// A BSR matrix as given: its header (check_bsr_header), its memory and its pointers, nulls and alignment.
// With the nnzb that host arrays have, where an upper bound was given; else as it is.
sparsek_bsr with_its_blocks(sparsek_bsr bsr);
void require_bsr(const sparsek_bsr& bsr);

}  // namespace sparsek
