// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek::cuda {

// A place in a ring of stages. Producer and consumers step through it alike.
template <int Stages>
struct RingState {
  int stage = 0;
  uint32_t phase = 0;
  __device__ int previous() const { return stage == 0 ? Stages - 1 : stage - 1; }
  __device__ void operator++() {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// A word of a stage for a whole warp, read by its first lane: the one that releases the stage, and so says itself that
// it has been read.
__device__ inline uint32_t read_by_one(const uint32_t* word, int lane) {
  return __shfl_sync(0xffffffffu, lane == 0 ? *word : 0, 0);
}

}  // namespace sparsek::cuda
