// SPDX-License-Identifier: Apache-2.0
// Checks on arguments that several entry points share. Each throws Error, naming the argument.
#pragma once

#include <cstdint>

#include "sparsek.h"

namespace sparsek {

struct Matrix;  // abi/handles.h

// A type of elements.
void require_dtype(int32_t dtype, const char* what);
// A bias and an activation that exist.
void require_epilogue(int32_t bias, const char* bias_name, int32_t activation, const char* activation_name);
void require_not_null(const void* pointer, const char* what);
// A pattern may come before its values, but not a product.
void require_values(const Matrix& matrix);
// Null passes: whether it may be null is another question.
void require_aligned(const void* pointer, int64_t alignment, const char* what);
// A factor: neither NaN nor infinite, so that rows without blocks are beta * C whatever the kernel.
void require_finite(float value, const char* what);
// SPARSEK_HOST or SPARSEK_DEVICE.
sparsek_memory require_memory(int32_t memory, const char* what);

// A dense operand (rows, n):(ld, 1): ld at least n, and its bytes within int64.
void require_dense(int64_t rows, int64_t n, int64_t ld, int64_t element_bytes, const char* ld_name);

// A BSR matrix as given: its header (check_bsr_header), its memory and its pointers, nulls and alignment.
void require_bsr(const sparsek_bsr& bsr);

}  // namespace sparsek
