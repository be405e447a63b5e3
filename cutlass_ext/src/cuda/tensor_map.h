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

}  // namespace sparsek::cuda
