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

}  // namespace sparsek::cuda
