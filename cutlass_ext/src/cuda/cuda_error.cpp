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

DeviceScope::DeviceScope(int device) : device_(device) {
  check(cudaGetDevice(&previous_), "cudaGetDevice");
  // Also where it is current: on a thread of the operating system that has made no such call yet there is no context,
  // and calls of the driver, which encode the descriptors of bulk copies, would fail.
  check(cudaSetDevice(device_), "cudaSetDevice");
}

DeviceScope::~DeviceScope() {
  if (previous_ != device_) cudaSetDevice(previous_);
}

}  // namespace sparsek::cuda
