// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek::cuda {

constexpr int kPrefixThreads = 1024;

// counts[i] = counts[0] + ... + counts[i], also in `copy`, which may be the same. For a CTA of kPrefixThreads.
__device__ inline void prefix_sum(int32_t* counts, int32_t* copy, int64_t count) {
  constexpr int kWarp = 32;
  constexpr unsigned kAll = ~0u;
  __shared__ int32_t of_warp[kPrefixThreads / kWarp], before;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (threadIdx.x == 0) before = 0;
  for (int64_t base = 0; base < count; base += kPrefixThreads) {
    const int64_t at = base + threadIdx.x;
    int32_t sum = at < count ? counts[at] : 0;
    for (int step = 1; step < kWarp; step *= 2) {
      const int32_t left = __shfl_up_sync(kAll, sum, step);
      if (lane >= step) sum += left;
    }
    if (lane == kWarp - 1) of_warp[warp] = sum;
    __syncthreads();
    if (warp == 0) {
      int32_t all = of_warp[lane];
      for (int step = 1; step < kWarp; step *= 2) {
        const int32_t left = __shfl_up_sync(kAll, all, step);
        if (lane >= step) all += left;
      }
      of_warp[lane] = all;
    }
    __syncthreads();
    sum += before + (warp > 0 ? of_warp[warp - 1] : 0);
    if (at < count) counts[at] = copy[at] = sum;
    __syncthreads();
    if (threadIdx.x == kPrefixThreads - 1) before = sum;
    __syncthreads();
  }
}

}  // namespace sparsek::cuda
