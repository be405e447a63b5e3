// SPDX-License-Identifier: Apache-2.0
// The sums of wgmma_planes: the instruction that adds to them, and how parts of them are set aside.
#pragma once

#include <cstdint>
#include <utility>

#include "cuda/planes.cuh"
#include "cuda/wgmma.cuh"
#include "cute/arch/mma_sm90_gmma.hpp"

namespace sparsek::cuda {

// Of a lane: sums[g] are of columns 8 g to 8 g + 7, in the layout of D in mma_sync.cuh.
using PlaneSums = float[kPieceColumns / 8][4];

template <size_t... I>
__device__ void wgmma_n128(PlaneSums& sums, uint64_t a, uint64_t b, std::index_sequence<I...>) {
  using Op = cute::SM90::GMMA::MMA_64x128x16_F32BF16BF16_SS<cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::MN>;
  Op::fma(a, b, sums[I / 4][I % 4]..., cute::SM90::GMMA::ScaleOut::One);
}

// Begins sums(64, 128) += a(64, 16) b(16, 128) without waiting.
__device__ inline void wgmma_n128(PlaneSums& sums, uint64_t a, uint64_t b) {
  wgmma_n128(sums, a, b, std::make_index_sequence<kPlaneSums>());
}

// The descriptor of A (64, K) in shared memory, K contiguous, swizzled by the bytes of a row: the next 8 rows follow.
template <int K>
__device__ uint64_t wgmma_descriptor_plane_a(uint32_t shared_address) {
  using Layout = cute::SM90::GMMA::LayoutType;
  cute::GmmaDescriptor descriptor;
  descriptor.desc_ = 0;
  descriptor.bitfield.start_address_ = static_cast<uint16_t>(shared_address >> 4);
  descriptor.bitfield.leading_byte_offset_ = 1;
  descriptor.bitfield.stride_byte_offset_ = 8 * K * 2 >> 4;
  descriptor.bitfield.layout_type_ = static_cast<uint8_t>(K == 32 ? Layout::B64 : Layout::B32);
  return descriptor.desc_;
}

// Keeps reads of the sums after a wait that precedes this call.
__device__ inline void fence_sums(PlaneSums& sums) {
#pragma unroll
  for (int i = 0; i < kPlaneSums; ++i) asm volatile("" : "+f"(sums[i / 4][i % 4])::"memory");
}

// Tensor cores cut sums off, so that the error of long sums of numbers of one sign grows with their length. So such
// sums are set aside in parts, which are added up by fp32 additions, that round. aside: (parts, kPlaneSums / 4,
// kPlaneConsumers), from the thread's first one on.
constexpr int kPartOfSums = kPlaneSums / 4 * kPlaneConsumers;

__device__ inline void add_part(const float4* aside, int part, PlaneSums& sums) {
#pragma unroll
  for (int i = 0; i < kPlaneSums / 4; ++i) {
    const float4 sum = aside[part * kPartOfSums + i * kPlaneConsumers];
    sums[i][0] += sum.x;
    sums[i][1] += sum.y;
    sums[i][2] += sum.z;
    sums[i][3] += sum.w;
  }
}

// As a part of `most`, or added to the last. Leaves zeros.
__device__ inline void set_aside(float4* aside, int part, int most, PlaneSums& sums) {
  if (part >= most) add_part(aside, most - 1, sums);
  float4* const to = aside + min(part, most - 1) * kPartOfSums;
#pragma unroll
  for (int i = 0; i < kPlaneSums / 4; ++i) {
    to[i * kPlaneConsumers] = {sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
    sums[i][0] = sums[i][1] = sums[i][2] = sums[i][3] = 0.f;
  }
}

// Of the whole warp.
__device__ inline bool all_finite(const PlaneSums& sums) {
  constexpr int kChains = 4;
  float zero[kChains] = {};
#pragma unroll
  for (int i = 0; i < kPlaneSums; ++i) zero[i % kChains] = fmaf(sums[i / 4][i % 4], 0.f, zero[i % kChains]);
  return !__any_sync(0xffffffffu, isnan((zero[0] + zero[1]) + (zero[2] + zero[3])));
}

}  // namespace sparsek::cuda
