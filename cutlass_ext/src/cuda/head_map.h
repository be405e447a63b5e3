// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

// A view of 16-bit elements by columns, rows, heads and batches: extents, and the strides of all but the columns in
// bytes.
struct HeadMapShape {
  int64_t extent[4];
  int64_t stride_bytes[3];
};

// As make_tensor_map (cuda/tensor_map.h), for boxes of one head: rows of 32, 64 or 128 bytes, which is also the
// swizzle.
cudaError_t make_head_map(CUtensorMap* map, const void* address, const HeadMapShape& shape, int box_columns,
                          int box_rows);

}  // namespace sparsek::cuda
