// SPDX-License-Identifier: Apache-2.0
#include "cuda/peer_access.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

bool may_read_peer(const void* pointer) {
  // Found through the runtime, so that the library can be linked and loaded without libcuda.
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &entry, 4000, cudaEnableDefault, &found) !=
          cudaSuccess ||
      entry == nullptr) {
    cudaGetLastError();
    return false;
  }
  const auto get = reinterpret_cast<PFN_cuPointerGetAttribute_v4000>(entry);
  unsigned access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  return get(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS &&
         (access & CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ) != 0;
}

}  // namespace sparsek::cuda
