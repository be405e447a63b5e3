// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek::cuda {

// Whether this CTA is the last of `ctas` to come here; for all of its threads. It then sees what the others wrote
// before. arrived: 0 at first, and again when the last has come.
__device__ inline bool is_last_cta(uint32_t* arrived, uint32_t ctas) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(arrived, ctas - 1) == ctas - 1;
  __syncthreads();
  __threadfence();
  return last;
}

}  // namespace sparsek::cuda
