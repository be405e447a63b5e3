// SPDX-License-Identifier: Apache-2.0
// Launches of kernels that may begin while the kernel before them in the stream still runs.
#pragma once

#include <cuda_runtime.h>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {

// The kernel must call start_dependent (dependent_launch.cuh) before it accesses memory. Such a launch also takes less
// of the host's time than another.
template <class... Parameters>
void launch_dependent(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned threads, size_t shared_bytes,
                      cudaStream_t stream, Parameters... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

}  // namespace sparsek::cuda
