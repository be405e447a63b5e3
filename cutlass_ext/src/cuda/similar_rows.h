// SPDX-License-Identifier: Apache-2.0
// Puts similar block rows near each other by kernels, as plan/row_order.cpp does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "cuda/row_pattern.h"

namespace sparsek::cuda {

// The bytes of device memory that sort_rows needs as scratch.
size_t sort_scratch_bytes(int32_t block_rows);

// by_middle (block_rows): the block rows by the mean of their columns; by_hash (block_rows): by min-hashes of their
// columns. Enqueued in the stream.
void sort_rows(const RowPattern& pattern, int32_t* by_middle, int32_t* by_hash, void* scratch, cudaStream_t stream);

}  // namespace sparsek::cuda
