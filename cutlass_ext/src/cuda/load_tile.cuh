// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/work_tile.h"

namespace sparsek::cuda {

static_assert(sizeof(WorkTile) == sizeof(int4), "a work tile is read as one int4");

// Loads a work tile through L1: its neighbours in the list share the cache line.
__device__ inline WorkTile load_tile(const WorkTile* from) {
  const int4 words = __ldg(reinterpret_cast<const int4*>(from));
  return {words.x, words.y, words.z, words.w};
}

__device__ inline void prefetch_to_l1(const void* from) { asm volatile("prefetch.global.L1 [%0];" ::"l"(from)); }

}  // namespace sparsek::cuda
