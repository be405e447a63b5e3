// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

// A 3-D view of 16-bit elements: extents, innermost first, and the strides of the two outer dimensions in bytes.
struct TensorMapShape {
  int64_t extent[3];
  int64_t stride_bytes[2];
};

// Makes the descriptor by which TMA loads or stores boxes of a view, swizzled by 32, 64 or 128 bytes. Elements outside
// of the view are read as zero, and not written. The address and the strides must be multiples of 16 bytes. It takes
// less time where the thread made the same one not long ago.
cudaError_t make_tensor_map(CUtensorMap* map, const void* address, const TensorMapShape& shape, const int (&box)[3],
                            int swizzle_bytes);

// A view of 16-bit elements by columns, rows, heads and batches: extents, and the strides of all but the columns in bytes.
struct HeadMapShape {
  int64_t extent[4];
  int64_t stride_bytes[3];
};

// The same for boxes of rows of one head, of 32, 64 or 128 bytes, which is also the swizzle.
cudaError_t make_head_map(CUtensorMap* map, const void* address, const HeadMapShape& shape, int box_columns,
                          int box_rows);

}  // namespace sparsek::cuda
