// SPDX-License-Identifier: Apache-2.0
// Stores by 32-bit addresses in shared memory, as in shared_address.cuh, of less and of more than a word.
#pragma once

#include <cstdint>

namespace sparsek::cuda {

// The lower half of a word.
__device__ inline void store_half(uint32_t to, uint32_t half) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(uint16_t(half)) : "memory");
}

// 16 bytes of zeros.
__device__ inline void clear_vector(uint32_t to) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
}

}  // namespace sparsek::cuda
