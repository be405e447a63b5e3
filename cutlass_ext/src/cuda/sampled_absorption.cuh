// SPDX-License-Identifier: Apache-2.0
// Whether full tiles get a fifth cell (cuda/sampled_tile.h), by a model of when the last tile ends.
#pragma once

#include <cstdint>

#include "cuda/prefix_sum.cuh"
#include "cuda/sampled_columns.cuh"
#include "cuda/sampled_composition.cuh"

namespace sparsek::cuda {
namespace sampled_listing {

constexpr int32_t kLevels = 512;

// When the last of `workers` ends, each of which takes the next tile when it has none, the costliest first. tiles: of
// each cost. busy (kLevels + kSampledCosts): how many workers end at each time; zeros at first, of no use afterwards.
__device__ inline int32_t end_of_tiles(const int32_t* tiles, int32_t workers, int32_t* busy) {
  busy[0] = workers;
  int32_t now = 0, last = 0;
  for (int32_t cost = kSampledCosts; cost > 0; --cost) {
    for (int32_t left = tiles[cost - 1]; left > 0;) {
      while (busy[now] == 0) ++now;
      if (now >= kLevels) return now;
      const int32_t taken = min(left, busy[now]);
      busy[now] -= taken;
      busy[now + cost] += taken;
      left -= taken;
      last = max(last, now + cost);
    }
  }
  return last;
}

// Whether tiles with a fifth cell end sooner, by more than the estimate may be wrong; not where tiles are many. For a
// CTA of kPrefixThreads.
__device__ inline bool choose_absorption(const SampledGrid& grid, const int32_t* cells) {
  constexpr int kOptions = 2, kTimes = kLevels + kSampledCosts;
  __shared__ int32_t tiles[kOptions][kSampledCosts], busy[kOptions][kTimes], ends[kOptions];
  if (threadIdx.x < kOptions * kSampledCosts) tiles[threadIdx.x / kSampledCosts][threadIdx.x % kSampledCosts] = 0;
  for (int i = threadIdx.x; i < kOptions * kTimes; i += kPrefixThreads) busy[i / kTimes][i % kTimes] = 0;
  __syncthreads();
  bool differ = false;
  for (int64_t pair = threadIdx.x; pair < grid.pairs; pair += kPrefixThreads) {
    for (int option = 0; option < kOptions; ++option) {
      const Composition composition(grid, cells + pair * kKinds, option == 1);
      differ |= composition.extras > 0;
      for (int run = 0; run < 3; ++run) {
        const int32_t count = composition.tiles(run);
        if (count > 0) atomicAdd(&tiles[option][composition.cost(run) - 1], count);
      }
    }
  }
  if (!__syncthreads_or(differ)) return false;
  // A thread of a warp of its own for each.
  if (threadIdx.x % kWarp == 0) {
    for (int option = threadIdx.x / kWarp; option < kOptions; option += kPrefixThreads / kWarp) {
      ends[option] = end_of_tiles(tiles[option], grid.workers, busy[option]);
    }
  }
  __syncthreads();
  return ends[0] < kLevels && ends[1] * 32 < ends[0] * 31;
}

}  // namespace sampled_listing
}  // namespace sparsek::cuda
