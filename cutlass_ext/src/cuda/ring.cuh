// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/shared_address.cuh"

namespace sparsek::cuda {

// A position in a ring of stages. Producer and consumers step through it in the same order.
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

// Reads a word of a stage for a whole warp, by the lane that releases the stage, so that the release is ordered after
// the read.
__device__ inline uint32_t read_by_one(const uint32_t* word, int lane, int reader = 0) {
  return __shfl_sync(0xffffffffu, lane == reader ? *word : 0, reader);
}

// The same, by an address in shared memory.
__device__ inline uint32_t read_by_one(uint32_t address, int lane, int reader) {
  return __shfl_sync(0xffffffffu, lane == reader ? load_word(address) : 0, reader);
}

}  // namespace sparsek::cuda
