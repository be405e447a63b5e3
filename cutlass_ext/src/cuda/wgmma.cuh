// SPDX-License-Identifier: Apache-2.0
// The instructions wgmma m64nNk16, N = 64, 128, 192 and 256, and the descriptors of their operands.
#pragma once

#include <cstdint>
#include <utility>

#include "cute/arch/mma_sm90_desc.hpp"
#include "cute/arch/mma_sm90_gmma.hpp"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"

namespace sparsek::cuda {

// The descriptor of B (16, 64 or 256) in shared memory, N contiguous, in chunks of (rows, 64) elements, 128-byte
// swizzle: the next 8 rows are 1024 bytes on, the next chunk chunk_bytes.
__device__ inline uint64_t wgmma_descriptor_b(uint32_t shared_address, uint32_t chunk_bytes) {
  cute::GmmaDescriptor descriptor;
  descriptor.desc_ = 0;
  descriptor.bitfield.start_address_ = static_cast<uint16_t>(shared_address >> 4);
  descriptor.bitfield.leading_byte_offset_ = static_cast<uint16_t>(chunk_bytes >> 4);
  descriptor.bitfield.stride_byte_offset_ = 1024 >> 4;
  descriptor.bitfield.layout_type_ = static_cast<uint8_t>(cute::SM90::GMMA::LayoutType::B128);
  return descriptor.desc_;
}

// The descriptor of A (64, 64), or of B (N, 64), in shared memory, K contiguous, 128-byte swizzle: the next 8 rows are
// 1024 bytes on. That of an A (64, 64) with M contiguous is the same: it is one chunk.
__device__ inline uint64_t wgmma_descriptor_a(uint32_t shared_address) {
  return wgmma_descriptor_b(shared_address, 16);
}

// The descriptor of the operand `bytes` further on in shared memory. The address stays within the 256 KB that it can
// express, so there is no carry into the upper half of the descriptor.
__device__ inline uint64_t advanced(uint64_t descriptor, uint32_t bytes) {
  return descriptor >> 32 << 32 | (uint32_t(descriptor) + (bytes >> 4));
}

using cute::SM90::GMMA::Major;

// The instruction for 8 Groups columns, of an A with K or M contiguous and a B with N or K contiguous.
template <class Element, Major MajorB, Major MajorA, int Groups>
struct WgmmaSs;
#define SPARSEK_WGMMA(GROUPS, COLUMNS)                                                 \
  template <Major MajorB, Major MajorA>                                                \
  struct WgmmaSs<cutlass::bfloat16_t, MajorB, MajorA, GROUPS> {                        \
    using Op = cute::SM90::GMMA::MMA_64x##COLUMNS##x16_F32BF16BF16_SS<MajorA, MajorB>; \
  };                                                                                   \
  template <Major MajorB, Major MajorA>                                                \
  struct WgmmaSs<cutlass::half_t, MajorB, MajorA, GROUPS> {                            \
    using Op = cute::SM90::GMMA::MMA_64x##COLUMNS##x16_F32F16F16_SS<MajorA, MajorB>;   \
  };
SPARSEK_WGMMA(8, 64)
SPARSEK_WGMMA(16, 128)
SPARSEK_WGMMA(24, 192)
SPARSEK_WGMMA(32, 256)
#undef SPARSEK_WGMMA

template <class Element, Major MajorB, Major MajorA, int Groups, size_t... I>
__device__ void wgmma_ss(float (&acc)[Groups][4], uint64_t a, uint64_t b, bool adds, std::index_sequence<I...>) {
  WgmmaSs<Element, MajorB, MajorA, Groups>::Op::fma(
      a, b, acc[I / 4][I % 4]..., adds ? cute::SM90::GMMA::ScaleOut::One : cute::SM90::GMMA::ScaleOut::Zero);
}

// Begins acc(64, 8 Groups) += a(64, 16) b(16, 8 Groups), or = where it does not add, without waiting. acc[g] are
// columns 8 g to 8 g + 7.
template <class Element, Major MajorB = Major::MN, Major MajorA = Major::K, int Groups>
__device__ void wgmma_ss(float (&acc)[Groups][4], uint64_t a, uint64_t b, bool adds = true) {
  wgmma_ss<Element, MajorB, MajorA>(acc, a, b, adds, std::make_index_sequence<Groups * 4>());
}

// Keeps reads of the accumulators after a wait that precedes this call.
template <int Groups>
__device__ void wgmma_fence(float (&acc)[Groups][4]) {
#pragma unroll
  for (int i = 0; i < Groups * 4; ++i) asm volatile("" : "+f"(acc[i / 4][i % 4])::"memory");
}

// Waits until at most `groups` of the committed groups of wgmma are unfinished. groups: at most Most.
template <int Most>
__device__ void wait_for_all_but(int groups) {
  if constexpr (Most > 0) {
    if (groups == Most) {
      cute::warpgroup_wait<Most>();
    } else {
      wait_for_all_but<Most - 1>(groups);
    }
  } else {
    cute::warpgroup_wait<0>();
  }
}

}  // namespace sparsek::cuda
