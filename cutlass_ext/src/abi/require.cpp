// SPDX-License-Identifier: Apache-2.0
#include "abi/require.h"

#include <cinttypes>
#include <cmath>

#include "abi/dtype.h"
#include "abi/error.h"
#include "abi/handles.h"
#include "plan/bsr_index.h"

namespace sparsek {

void require_dtype(int32_t dtype, const char* what) {
  if (!is_general_dtype(dtype)) {
    fail(SPARSEK_UNSUPPORTED_DTYPE,
         "%s = %d is none of SPARSEK_BF16 (1), SPARSEK_FP16 (2), SPARSEK_FP32 (3), SPARSEK_FP64 (4)%s", what, dtype,
         refused_dtype_hint(dtype));
  }
}

void require_dtype_b(int32_t dtype_b, int32_t dtype, const char* what) {
  require_dtype(dtype_b, what);
  if (dtype_b == dtype || dtype_bytes(dtype_b) > dtype_bytes(dtype)) return;
  fail(SPARSEK_UNSUPPORTED_DTYPE, "%s = %d with A of dtype %d: B is of A's type or of a wider one", what, dtype_b,
       dtype);
}

void require_plain_where_mixed(OperandTypes types, int32_t op, int32_t order_b, int32_t order_c, const char* what) {
  const bool plain = op == SPARSEK_DSD && order_b == SPARSEK_ROW_MAJOR && order_c == SPARSEK_ROW_MAJOR;
  if (types.a == types.b || plain) return;
  fail(SPARSEK_UNSUPPORTED_DTYPE,
       "%s = %d with A of dtype %d: A of a narrower type than B is served by SPARSEK_DSD (0) of row-major operands "
       "alone",
       what, static_cast<int>(types.b), static_cast<int>(types.a));
}

void require_dtype_c(int32_t dtype_c, int32_t dtype, const char* what) {
  require_dtype(dtype_c, what);
  if ((dtype_c == SPARSEK_FP64) == (dtype == SPARSEK_FP64)) return;
  fail(SPARSEK_UNSUPPORTED_DTYPE, "%s = %d with B of dtype %d: C is of SPARSEK_FP64 (4) where B is, and only then",
       what, dtype_c, dtype);
}

void require_epilogue(int32_t bias, const char* bias_name, int32_t activation, const char* activation_name) {
  if (bias < SPARSEK_BIAS_NONE || bias > SPARSEK_BIAS_COLUMN) {
    fail(SPARSEK_BAD_ARGUMENT,
         "%s = %d is none of SPARSEK_BIAS_NONE (0), SPARSEK_BIAS_ROW (1), SPARSEK_BIAS_COLUMN (2)", bias_name, bias);
  }
  if (activation < SPARSEK_ACTIVATION_NONE || activation > SPARSEK_ACTIVATION_SILU) {
    fail(SPARSEK_BAD_ARGUMENT,
         "%s = %d is none of SPARSEK_ACTIVATION_NONE (0), SPARSEK_ACTIVATION_RELU (1), SPARSEK_ACTIVATION_GELU (2), "
         "SPARSEK_ACTIVATION_SILU (3)",
         activation_name, activation);
  }
}

void require_not_null(const void* pointer, const char* what) {
  if (pointer == nullptr) fail(SPARSEK_NULL_POINTER, "%s is null", what);
}

void require_values(const Matrix& matrix) {
  if (!matrix.has_values) {
    fail(SPARSEK_NULL_POINTER, "the matrix has no values yet: give them with matrix_set_values, or a product its own");
  }
}

void require_aligned(const void* pointer, int64_t alignment, const char* what) {
  if (reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(alignment) != 0) {
    fail(SPARSEK_MISALIGNED, "%s = %p is not aligned to %" PRId64 " bytes", what, pointer, alignment);
  }
}

void require_finite(float value, const char* what) {
  if (!std::isfinite(value)) fail(SPARSEK_BAD_ARGUMENT, "%s = %g is not finite", what, double{value});
}

sparsek_memory require_memory(int32_t memory, const char* what) {
  if (memory != SPARSEK_HOST && memory != SPARSEK_DEVICE) {
    fail(SPARSEK_BAD_ARGUMENT, "%s = %d is neither SPARSEK_HOST (1) nor SPARSEK_DEVICE (2)", what, memory);
  }
  return static_cast<sparsek_memory>(memory);
}

sparsek_order require_order(int32_t order, const char* what) {
  if (order != SPARSEK_ROW_MAJOR && order != SPARSEK_COLUMN_MAJOR) {
    fail(SPARSEK_BAD_ARGUMENT, "%s = %d is neither SPARSEK_ROW_MAJOR (0) nor SPARSEK_COLUMN_MAJOR (1)", what, order);
  }
  return static_cast<sparsek_order>(order);
}

void require_dense(int64_t rows, int64_t n, int64_t ld, int64_t element_bytes, const char* ld_name) {
  if (ld < n) {
    fail(SPARSEK_BAD_LEADING_DIMENSION, "%s = %" PRId64 " is below the %" PRId64 " elements that follow each other",
         ld_name, ld, n);
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(rows, ld, &bytes) || __builtin_mul_overflow(bytes, element_bytes, &bytes)) {
    fail(SPARSEK_BAD_SIZE, "%" PRId64 " rows of %s = %" PRId64 " elements do not fit in an address space", rows,
         ld_name, ld);
  }
}

bool overlap(const ByteRows& a, const ByteRows& b) {
  if (a.rows == 0 || a.width == 0 || b.rows == 0 || b.width == 0) return false;
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data), begin_b = reinterpret_cast<uintptr_t>(b.data);
  if (begin_b < begin_a) return overlap(b, a);
  const auto bytes_a = static_cast<uintptr_t>((a.rows - 1) * a.pitch + a.width);
  if (begin_b - begin_a >= bytes_a) return false;
  if (a.pitch != b.pitch) return true;
  const auto shift = static_cast<int64_t>((begin_b - begin_a) % static_cast<uintptr_t>(a.pitch));
  return shift < a.width || shift + b.width > a.pitch;
}

sparsek_bsr with_its_blocks(sparsek_bsr bsr) {
  if ((bsr.flags & SPARSEK_BSR_BOUND) == 0 || bsr.memory != SPARSEK_HOST) return bsr;
  const int32_t last = make_bsr_shape(bsr).block_rows;
  const int64_t blocks = bsr.index_type == SPARSEK_INT64   ? static_cast<const int64_t*>(bsr.row_ptr)[last]
                         : bsr.index_type == SPARSEK_INT16 ? static_cast<const int16_t*>(bsr.row_ptr)[last]
                                                           : static_cast<const int32_t*>(bsr.row_ptr)[last];
  if (blocks >= 0 && blocks <= bsr.nnzb) bsr.nnzb = blocks;  // else a fault that is found with the others
  return bsr;
}

void require_bsr(const sparsek_bsr& bsr) {
  check_bsr_header(bsr);
  require_memory(bsr.memory, "bsr->memory");
  require_not_null(bsr.row_ptr, "bsr->row_ptr");
  if (bsr.nnzb > 0) require_not_null(bsr.col_idx, "bsr->col_idx");
  const int64_t index_bytes = index_type_bytes(bsr.index_type);
  require_aligned(bsr.row_ptr, index_bytes, "bsr->row_ptr");
  require_aligned(bsr.col_idx, index_bytes, "bsr->col_idx");
  require_aligned(bsr.block_idx, index_bytes, "bsr->block_idx");
  require_aligned(bsr.values, dtype_bytes(bsr.dtype), "bsr->values");
}

}  // namespace sparsek
