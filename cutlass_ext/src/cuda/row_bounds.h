// SPDX-License-Identifier: Apache-2.0
// Where the entries of each block row begin in each part of A's columns.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

struct BoundedRows {
  const int32_t* row_ptr;  // (block_rows + 1): entries of each block row
  const int32_t* entry_k;  // (entries): first column of each block; they ascend in a row
  int64_t block_rows;
  uint32_t columns;  // of a part
  int64_t parts;
};

// Bytes of the bounds, a multiple of 256.
constexpr int64_t bytes_of_bounds(int64_t block_rows, int64_t parts) {
  return ((parts + 1) * block_rows * int64_t{sizeof(int32_t)} + 255) / 256 * 256;
}

// Loads the kernel. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_row_bounds();

// Writes bounds, (block_rows, parts + 1), row-major: a row's first entry whose block begins in this part, or behind it.
// entries: of all rows, about.
cudaError_t bound_rows(const BoundedRows& rows, int64_t entries, int32_t* bounds, cudaStream_t stream);

}  // namespace sparsek::cuda
