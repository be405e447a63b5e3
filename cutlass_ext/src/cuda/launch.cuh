// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace sparsek::cuda {

struct LaunchWay {
  bool overlap = false;  // may begin before the previous kernel in the stream has ended, see dependent_launch.cuh
  int cluster = 1;       // CTAs of a cluster
};

// Launches a kernel and returns the status of this launch; cudaGetLastError might return an older error of the thread.
template <class... Formal, class... Actual>
cudaError_t launch_kernel(void (*kernel)(Formal...), int ctas, int threads, size_t shared_bytes, cudaStream_t stream,
                          const LaunchWay& way, const Actual&... arguments) {
  cudaLaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (way.overlap) {
    attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[count++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (way.cluster > 1) {
    attributes[count].id = cudaLaunchAttributeClusterDimension;
    attributes[count++].val.clusterDim = {static_cast<unsigned>(way.cluster), 1, 1};
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(ctas);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace sparsek::cuda
