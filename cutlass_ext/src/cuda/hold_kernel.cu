// SPDX-License-Identifier: Apache-2.0
#include "cuda/hold_kernel.h"

#include <algorithm>

#include "cuda/launch.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace holding {

__device__ int64_t nanoseconds_now() {
  int64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// One thread of the whole SM looks at the host's word, and rarely: loads from host memory that never pause slow down
// whatever else runs on the GPU.
__global__ void __launch_bounds__(1) hold_kernel(volatile HoldWords* words, int64_t nanoseconds, unsigned pause) {
  const int64_t end = nanoseconds_now() + nanoseconds;
  uint32_t sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  volatile uint32_t* const began = reinterpret_cast<volatile uint32_t*>(words + 1);
  began[blockIdx.x] = 1 + sm;
  __threadfence_system();
  while (words->stop == 0 && nanoseconds_now() < end) __nanosleep(pause);
  if (words->stop == 0) words->expired = 1;
  __threadfence_system();
  began[blockIdx.x] = kHoldEnded;
}

// Nanoseconds from one load to the next of a CTA: all of them together load about once in 4 us. __nanosleep ends
// after at most a millisecond.
unsigned pause_between_loads(int ctas) { return static_cast<unsigned>(std::clamp(4000 * ctas, 20000, 1000000)); }

}  // namespace holding

cudaError_t launch_hold(int ctas, HoldWords* words, int64_t nanoseconds, cudaStream_t stream) {
  int device = 0, shared_bytes = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error == cudaSuccess) {
    error = cudaFuncSetAttribute(holding::hold_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  }
  if (error != cudaSuccess) return error;
  return launch_kernel(holding::hold_kernel, ctas, 1, static_cast<size_t>(shared_bytes), stream, {}, words, nanoseconds,
                       holding::pause_between_loads(ctas));
}

}  // namespace sparsek::cuda
