// SPDX-License-Identifier: Apache-2.0
// The sums of wgmma_planes: the instruction that adds to them, and how those that are not finite are computed again.
#pragma once

#include <cstdint>
#include <utility>

#include "cuda/launch_args.h"
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

// The 16 rows and 128 columns of C that a warp has the sums of.
struct RowsOfWarp {
  int first;           // of the tile
  uint32_t row[2];     // of C: the first of eight each
  uint32_t first_col;  // of the tile
  int lane;
};

// The sum of one element, for the whole warp, by fp32 FMAs from the blocks that exist. row: of the tile, and in_block
// that of its blocks.
template <int K>
__device__ float sum_of_element(const LaunchArgs& args, const PlaneMemory& planes, const WorkTile& tile, int row,
                                uint32_t in_block, uint32_t col, int64_t steps_b, int lane) {
  const int slot = row / (kPlaneTileM / args.slots), half = row / kPieceRows, in_panel = col % kPieceColumns;
  const bool gathers = args.block_m % kPieceRows != 0;
  const int parts = args.block_m / kPieceRows, steps = args.block_k / K;
  float sum = 0.f;
#pragma unroll 1
  for (int e = tile.entry_begin; e < tile.entry_begin + tile.entry_count; ++e) {
    const int32_t block = args.entry_block[int64_t(e) * args.slots + slot];
    if (block == kNoBlock) continue;
    const int64_t first_k = args.entry_k[e];
    const int64_t piece = gathers ? int64_t(e) * kPlaneHalves + half : int64_t(block) * parts + in_block / kPieceRows;
    const char* const a = planes.a + piece * steps * PieceBytes<K>::kA;
    const char* const b = planes.b + (int64_t(col / kPieceColumns) * steps_b + first_k / K) * PieceBytes<K>::kB;
#pragma unroll 1
    for (int k = lane; k < args.block_k && first_k + k < args.cols; k += 32) {
      const int step = k / K, in_piece = k % K;
      const char* const at_a = a + step * PieceBytes<K>::kA +
                               place_in_plane_a<K>(row % kPieceRows, in_piece / kPlaneVector) +
                               in_piece % kPlaneVector * 2;
      const char* const at_b = b + step * PieceBytes<K>::kB + place_in_plane_b<K>(in_piece, in_panel / kPlaneVector) +
                               in_panel % kPlaneVector * 2;
      sum = fmaf(number_of_planes(at_a, PieceBytes<K>::kPlaneA), number_of_planes(at_b, PieceBytes<K>::kPlaneB), sum);
    }
    if (__any_sync(0xffffffffu, isnan(sum))) return NAN;
  }
#pragma unroll
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
  return sum;
}

// Computes those sums within C again that are not finite: a plane of 0, or an absent block, times Inf is NaN, Inf in
// two planes may be of different signs, and h may be beyond the largest fp32 where the whole sum is not. It is counted
// in args.recomputed.
template <int K>
__device__ void make_exact(const LaunchArgs& args, const PlaneMemory& planes, const WorkTile& tile,
                           const RowsOfWarp& own, int64_t steps_b, PlaneSums& sums) {
  float zero = 0.f;
#pragma unroll
  for (int i = 0; i < kPlaneSums; ++i) zero = fmaf(sums[i / 4][i % 4], 0.f, zero);
  if (!__any_sync(0xffffffffu, isnan(zero))) return;

  uint64_t wanted = 0;  // bit i: sums[i / 4][i % 4]
#pragma unroll
  for (int i = 0; i < kPlaneSums; ++i) {
    if (!isfinite(sums[i / 4][i % 4])) wanted |= uint64_t{1} << i;
  }
  bool counted = false;
#pragma unroll 1
  for (uint32_t lanes; (lanes = __ballot_sync(0xffffffffu, wanted != 0)) != 0;) {
    const int owner = __ffs(lanes) - 1;
    const int at = __shfl_sync(0xffffffffu, __ffsll(wanted) - 1, owner);
    if (own.lane == owner) wanted &= wanted - 1;
    const int half = at % 4 / 2;
    const uint32_t row = (half == 0 ? own.row[0] : own.row[1]) + owner / 4;
    const uint32_t col = own.first_col + at / 4 * 8 + owner % 4 * 2 + at % 2;
    if (row >= args.rows || col >= args.n) continue;
    if (!counted && own.lane == 0) atomicAdd(args.recomputed, 1ull);
    counted = true;
    const float sum = sum_of_element<K>(args, planes, tile, own.first + half * 8 + owner / 4,
                                        row % uint32_t(args.block_m), col, steps_b, own.lane);
#pragma unroll
    for (int i = 0; i < kPlaneSums; ++i) {
      if (own.lane == owner && i == at) sums[i / 4][i % 4] = sum;
    }
  }
}

}  // namespace sparsek::cuda
