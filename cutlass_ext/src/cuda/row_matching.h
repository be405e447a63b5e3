// SPDX-License-Identifier: Apache-2.0
// Finds block rows that are to share a tile by kernels, as plan/row_order.cpp and plan/row_matching.cpp do on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "cuda/row_pattern.h"

namespace sparsek::cuda {

// Whether row groups of `group` block rows may get rows that are not neighbours. Of a matrix with more than 2^16 block
// columns they do not, other than on the host.
bool may_match_rows(int32_t block_rows, int32_t block_cols, int32_t group);

// The bytes of device memory that match_rows needs as scratch.
size_t match_scratch_bytes(int32_t block_rows, int32_t block_cols, int32_t group);

// About how long match_rows takes, on an H200 with random rows.
double match_seconds(int32_t block_rows, int32_t block_cols, int32_t group);

// order (groups, group): the block rows in the order of order_rows (plan/row_order.h), the same ones, padded with the
// numbers from block_rows on; the natural order where the index has a fault. *zero becomes 0. group: a power of two
// from 2 on; may_match_rows. Enqueued in the stream, as a number of kernels that the sizes alone decide; nothing comes
// back to the host.
void match_rows(const RowPattern& pattern, int32_t group, int32_t* order, int32_t* zero, void* scratch,
                cudaStream_t stream);

}  // namespace sparsek::cuda
