// SPDX-License-Identifier: Apache-2.0
#include "cuda/wait_for_device.h"

#include <cuda_runtime_api.h>

namespace sparsek::cuda {

void wait_for_device(int device) noexcept {
  int before = 0;
  cudaGetDevice(&before);
  cudaSetDevice(device);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  // Freeing memory that is not of a pool waits for all that may use it, and that is all there is.
  void* memory = nullptr;
  if (cudaMalloc(&memory, 1) == cudaSuccess) cudaFree(memory);
  cudaThreadExchangeStreamCaptureMode(&mode);
  cudaSetDevice(before);
}

}  // namespace sparsek::cuda
