// SPDX-License-Identifier: Apache-2.0
#include "cuda/tensor_map.h"

#include <cudaTypedefs.h>

namespace sparsek::cuda {
namespace {

// Found through the runtime, so that the library can be linked and loaded without libcuda.
PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  static const auto function = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(error == cudaSuccess ? entry : nullptr);
  }();
  return function;
}

}  // namespace

cudaError_t make_tensor_map(CUtensorMap* map, const void* address, const TensorMapShape& shape, const int (&box)[3],
                            int swizzle_bytes) {
  if (encoder() == nullptr) return cudaErrorCallRequiresNewerDriver;
  cuuint64_t extent[3], stride[2];
  cuuint32_t box_extent[3];
  for (int i = 0; i < 3; ++i) {
    extent[i] = static_cast<cuuint64_t>(shape.extent[i]);
    box_extent[i] = static_cast<cuuint32_t>(box[i]);
    if (i < 2) stride[i] = static_cast<cuuint64_t>(shape.stride_bytes[i]);
  }
  const cuuint32_t every[3] = {1, 1, 1};
  const CUtensorMapSwizzle swizzle = swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                           : CU_TENSOR_MAP_SWIZZLE_32B;
  // Elements are only moved: only the size of their type matters.
  const CUresult result = encoder()(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, const_cast<void*>(address), extent, stride,
                                    box_extent, every, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                    CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return static_cast<cudaError_t>(result);  // the runtime uses the driver's numbers
}

}  // namespace sparsek::cuda
