// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace sparsek::cuda {

// Launches a kernel and returns what came of it: not an older error of the thread, as cudaGetLastError might. overlap:
// the kernel may begin before the one before it in the stream has ended, see dependent_launch.cuh.
template <class... Formal, class... Actual>
cudaError_t launch_kernel(void (*kernel)(Formal...), int ctas, int threads, size_t shared_bytes, cudaStream_t stream,
                          bool overlap, const Actual&... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace sparsek::cuda
