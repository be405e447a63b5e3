// SPDX-License-Identifier: Apache-2.0
// wgmma m64n256k16 with A in registers.
#pragma once

#include <cstdint>
#include <utility>

#include "cute/arch/mma_sm90_desc.hpp"
#include "cute/arch/mma_sm90_gmma.hpp"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"

namespace sparsek::cuda {

// Of B (16, 256) in shared memory, N contiguous, in chunks of 64 columns of (rows, 64) elements, 128-byte swizzle:
// the next 8 rows lie 1024 bytes on, the next chunk chunk_bytes.
__device__ inline uint64_t wgmma_descriptor_b(uint32_t shared_address, uint32_t chunk_bytes) {
  cute::GmmaDescriptor descriptor;
  descriptor.desc_ = 0;
  descriptor.bitfield.start_address_ = static_cast<uint16_t>(shared_address >> 4);
  descriptor.bitfield.leading_byte_offset_ = static_cast<uint16_t>(chunk_bytes >> 4);
  descriptor.bitfield.stride_byte_offset_ = 1024 >> 4;
  descriptor.bitfield.layout_type_ = static_cast<uint8_t>(cute::SM90::GMMA::LayoutType::B128);
  return descriptor.desc_;
}

template <class Element>
struct WgmmaRs;
template <>
struct WgmmaRs<cutlass::bfloat16_t> {
  using Op = cute::SM90::GMMA::MMA_64x256x16_F32BF16BF16_RS<cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::MN>;
};
template <>
struct WgmmaRs<cutlass::half_t> {
  using Op = cute::SM90::GMMA::MMA_64x256x16_F32F16F16_RS<cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::MN>;
};

template <class Element, size_t... I>
__device__ void wgmma_rs(float (&acc)[32][4], const uint32_t (&a)[4], uint64_t b, std::index_sequence<I...>) {
  WgmmaRs<Element>::Op::fma(a[0], a[1], a[2], a[3], b, acc[I / 4][I % 4]..., cute::SM90::GMMA::ScaleOut::One);
}

// acc(64, 256) += a(64, 16) b(16, 256), begun and not waited for. A warp holds 16 of the rows, as mma_sync.cuh says;
// acc[g] are columns 8 g to 8 g + 7.
template <class Element>
__device__ void wgmma_rs(float (&acc)[32][4], const uint32_t (&a)[4], uint64_t b) {
  wgmma_rs<Element>(acc, a, b, std::make_index_sequence<128>());
}

// a = next where `always` is not 0, which it never is, and the compiler cannot know. wgmma reads its A registers until
// it is waited for, but the compiler takes them to be free from its issue on, and would load `next` into them. This
// keeps them until here.
__device__ inline void replace_in_flight(uint32_t& a, uint32_t next, int always) {
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p mov.b32 %0, %1; }" : "+r"(a) : "r"(next), "r"(always));
}

// Reads of the accumulators stay behind a wait that stands before this.
__device__ inline void wgmma_fence(float (&acc)[32][4]) {
#pragma unroll
  for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(acc[i / 4][i % 4])::"memory");
}

}  // namespace sparsek::cuda
