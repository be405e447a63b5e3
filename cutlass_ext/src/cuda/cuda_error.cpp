// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_error.h"

#include "abi/error.h"

namespace sparsek::cuda {

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears it, where it can be cleared, so that the next call does not report it again
  if (error == cudaErrorMemoryAllocation) fail(SPARSEK_OUT_OF_MEMORY, "%s: out of device memory", call);
  fail(SPARSEK_CUDA_ERROR, "%s: %s (%s, %d)", call, cudaGetErrorString(error), cudaGetErrorName(error),
       static_cast<int>(error));
}

}  // namespace sparsek::cuda
