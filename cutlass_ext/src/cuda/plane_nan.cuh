// SPDX-License-Identifier: Apache-2.0
// Sums of wgmma_planes that are not finite.
//
// h holds Inf and NaN as they are, so the sum of h h is right where B or A brings one of them to it. The other sums say
// nothing there: they have Inf times 0, or an Inf of the other sign. But a sum of h h may also be spoilt: by zeros in
// place of an absent block times Inf or NaN, by an h that is 0 though the number is not, or since h is rounded beyond
// the largest fp32. So a warp looks where its rows meet NaN and Inf, and computes those sums again that this does not
// explain.
#pragma once

#include <cstdint>

#include "cuda/launch_args.h"
#include "cuda/plane_sums.cuh"
#include "cuda/planes.cuh"
#include "plan/work_tile.h"

namespace sparsek::cuda {

constexpr uint32_t kWarp = 0xffffffffu;

// The 16 rows and 128 columns of C that a warp has the sums of.
struct RowsOfWarp {
  int first;           // of the tile
  uint32_t row[2];     // of C: the first of eight each
  uint32_t first_col;  // of the tile
  int lane;
};

// Replaces whole sums that are not finite by those of h h, or by NaN where these are finite: then no NaN or Inf of A
// or B is in them.
__device__ inline void keep_high(const PlaneSums& high, PlaneSums& whole) {
#pragma unroll
  for (int i = 0; i < kPlaneSums; ++i) {
    float& sum = whole[i / 4][i % 4];
    const float of_high = high[i / 4][i % 4];
    if (!isfinite(sum)) sum = isfinite(of_high) ? NAN : of_high;
  }
}

// Whether one of eight numbers of bf16 is not finite: then a bit of kNotFinite is set.
constexpr uint32_t kNotFinite = 0x80008000u;
__device__ inline uint32_t not_finite(uint4 eight) {
  const auto next = [](uint32_t pair) { return (pair & 0x7f807f80u) + 0x00800080u; };
  return next(eight.x) | next(eight.y) | next(eight.z) | next(eight.w);
}

// Bit i: number i is NaN; bit 8 + i: it is Inf.
__device__ inline uint32_t marks_of(uint4 eight) {
  const uint32_t pairs[kPlaneVector / 2] = {eight.x, eight.y, eight.z, eight.w};
  uint32_t marks = 0;
#pragma unroll
  for (int i = 0; i < kPlaneVector; ++i) {
    const uint32_t magnitude = pairs[i / 2] >> i % 2 * 16 & 0x7fff;
    marks |= uint32_t(magnitude > 0x7f80) << i | uint32_t(magnitude == 0x7f80) << (8 + i);
  }
  return marks;
}

// Marks of columns of B in the blocks that a warp's rows have, for the first eight of them and the others: lanes c and
// c + 16 have those of columns 8 c to 8 c + 7. kHasBlock: the rows have a block.
struct MarksOfRows {
  static constexpr uint32_t kHasBlock = 1u << 16;
  uint32_t of[2] = {};
};

template <int K>
__device__ MarksOfRows marks_of_b(const LaunchArgs& args, const PlaneMemory& planes, const WorkTile& tile,
                                  const RowsOfWarp& own, int64_t steps_b) {
  constexpr int kEights = kPieceColumns / kPlaneVector, kRows = 32 / kEights;
  const int slot_rows = kPlaneTileM / args.slots, eight = own.lane % kEights;
  const int slot[2] = {own.first / slot_rows, (own.first + 8) / slot_rows};
  const char* const panel = planes.b + int64_t(tile.n_tile) * steps_b * PieceBytes<K>::kB;
  MarksOfRows found;
#pragma unroll 1
  for (int64_t e = tile.entry_begin; e < tile.entry_begin + tile.entry_count; ++e) {
    const int32_t* const blocks = args.entry_block + e * args.slots;
    const bool has[2] = {blocks[slot[0]] != kNoBlock, blocks[slot[1]] != kNoBlock};
    if (!has[0] && !has[1]) continue;
    const char* piece = panel + int64_t(args.entry_k[e] / K) * PieceBytes<K>::kB;
    uint32_t marks = 0;
#pragma unroll 1
    for (int step = 0; step < args.block_k / K; ++step, piece += PieceBytes<K>::kB) {
      const auto read = [&](int i) {
        return *reinterpret_cast<const uint4*>(piece + place_in_plane_b<K>(own.lane / kEights + i * kRows, eight));
      };
      uint32_t some = 0;
#pragma unroll
      for (int i = 0; i < K / kRows; ++i) some |= not_finite(read(i));
      if ((some & kNotFinite) == 0) continue;
#pragma unroll 1
      for (int i = 0; i < K / kRows; ++i) marks |= marks_of(read(i));
    }
    __syncwarp();
    marks |= __shfl_xor_sync(kWarp, marks, kEights);
#pragma unroll
    for (int h = 0; h < 2; ++h) found.of[h] |= has[h] ? marks | MarksOfRows::kHasBlock : 0;
    const bool all_nan = (found.of[0] & found.of[1] & 0xff) == 0xff;
    if (__all_sync(kWarp, all_nan)) break;
  }
  return found;
}

// Calls `each` with the blocks of the warp's 16 rows: lanes r and r + 16 have row r, and the elements of it from `a`
// on, `count` of them (0: it has no such block), which are multiplied by those of B from row `k` on. Asks after the
// first entries of the tile, and then after twice as many and more, whether it `ends`.
template <class Each, class Ends>
__device__ void each_block(const LaunchArgs& args, const WorkTile& tile, const RowsOfWarp& own, const Each& each,
                           const Ends& ends) {
  constexpr int kFirst = 4, kMost = 16;  // entries until it asks
  const int slot_rows = kPlaneTileM / args.slots, half = own.lane / 16, eight = own.lane / 8 % 2;
  const int slot = (own.first + half * 8) / slot_rows;
  const uint32_t in_block = ((eight == 0 ? own.row[0] : own.row[1]) + own.lane % 8) % uint32_t(args.block_m);
#pragma unroll 1
  for (int first = 0, next; first < tile.entry_count && !ends(); first = next) {
    next = first + min(first + kFirst, kMost);
    // Lanes i and i + 16 have those of entry i, for the first eight rows and the others.
    const int64_t e = int64_t(tile.entry_begin) + first + own.lane % 16;
    const bool inside = first + own.lane % 16 < min(next, tile.entry_count);
    const int32_t k_of_lane = inside ? args.entry_k[e] : 0;
    const int32_t of_lane = inside ? args.entry_block[e * args.slots + slot] : kNoBlock;
    uint32_t left = __ballot_sync(kWarp, of_lane != kNoBlock);
    left = (left | left >> 16) & 0xffff;
#pragma unroll 1
    for (; left != 0; left &= left - 1) {
      const int from = __ffs(left) - 1;
      const int32_t k = __shfl_sync(kWarp, k_of_lane, from), block = __shfl_sync(kWarp, of_lane, from + 16 * eight);
      const int count = block == kNoBlock ? 0 : int(min(int64_t(args.block_k), args.cols - k));
      const auto* const values = static_cast<const float*>(args.values);
      each(k, values + (int64_t(max(block, 0)) * args.block_m + in_block) * args.block_k, count);
      __syncwarp();
    }
  }
}

// Whether row r of the warp's has a NaN or, bit 1, an Inf: in lanes r and r + 16.
__device__ inline uint32_t marks_of_a(const LaunchArgs& args, const WorkTile& tile, const RowsOfWarp& own) {
  uint32_t marks = 0;
  each_block(
      args, tile, own,
      [&](int32_t, const float* a, int count) {
#pragma unroll 8
        for (int i = own.lane / 16; i < count; i += 2) marks |= uint32_t(isnan(a[i])) | uint32_t(isinf(a[i])) << 1;
      },
      [] { return false; });
  return marks | __shfl_xor_sync(kWarp, marks, 16);
}

// The sums of the warp's 16 rows in eight columns of C, by fp32 FMAs: lanes r and r + 16 return those of row r.
// has_block: the lane's row has one. Where NaN or Inf are everywhere, the first blocks make all sums NaN, and no later
// one changes them.
__device__ inline void sums_of_columns(const LaunchArgs& args, const WorkTile& tile, const RowsOfWarp& own, int64_t col,
                                       bool aligned_b, bool has_block, float (&sums)[kPlaneVector]) {
  const auto* const b = static_cast<const float*>(args.b) + col;
#pragma unroll
  for (float& sum : sums) sum = 0.f;
  each_block(
      args, tile, own,
      [&](int32_t k, const float* a, int count) {
#pragma unroll 4
        for (int i = own.lane / 16; i < count; i += 2) {
          float of_b[kPlaneVector];
          read_vector(of_b, b + (int64_t(k) + i) * args.ldb, args.n - col, aligned_b);
#pragma unroll
          for (int j = 0; j < kPlaneVector; ++j) sums[j] = fmaf(a[i], of_b[j], sums[j]);
        }
      },
      [&] {
        bool all_nan = true;
#pragma unroll
        for (int j = 0; j < kPlaneVector; ++j) {
          const float sum = sums[j] + __shfl_xor_sync(kWarp, sums[j], 16);
          all_nan = all_nan && (isnan(sum) || col + j >= args.n);
        }
        return __all_sync(kWarp, all_nan || !has_block) != 0;
      });
#pragma unroll
  for (float& sum : sums) sum += __shfl_xor_sync(kWarp, sum, 16);
}

// Makes sums right that are not finite, after keep_high. Warps that compute some again are counted in args.recomputed.
template <int K>
__device__ void make_exact(const LaunchArgs& args, const PlaneMemory& planes, const WorkTile& tile,
                           const RowsOfWarp& own, int64_t steps_b, bool aligned_b, PlaneSums& sums) {
  constexpr int kGroups = kPieceColumns / 8, kFewGroups = 2;
  // Bit i: sums[i / 4][i % 4]. Zeros spoil a sum to NaN, so one that is Inf is right if it meets an Inf.
  uint64_t wanted = 0, infinite = 0;
  bool has_block;
  {
    const MarksOfRows marks = marks_of_b<K>(args, planes, tile, own, steps_b);
    has_block = ((own.lane / 8 % 2 == 0 ? marks.of[0] : marks.of[1]) & MarksOfRows::kHasBlock) != 0;
#pragma unroll
    for (int i = 0; i < kPlaneSums; ++i) {
      const int half = i % 4 / 2, column = own.lane % 4 * 2 + i % 2;
      const uint32_t mark = __shfl_sync(kWarp, marks.of[half], i / 4) >> column;
      const bool in_c = own.row[half] + own.lane / 4 < args.rows && own.first_col + i / 4 * 8 + column < args.n;
      const float sum = sums[i / 4][i % 4];
      const bool meets_nan = (mark & 1) != 0, meets_inf = (mark >> 8 & 1) != 0;
      if (!in_c || isfinite(sum) || meets_nan || (meets_inf && isinf(sum))) continue;
      wanted |= uint64_t{1} << i;
      if (isinf(sum)) infinite |= uint64_t{1} << i;
    }
  }
  const auto next_group = [&] { return __reduce_min_sync(kWarp, wanted != 0 ? (__ffsll(wanted) - 1) / 4 : kGroups); };
  if (next_group() == kGroups) return;
  if (own.lane == 0) atomicAdd(args.recomputed, 1ull);

  int groups = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) groups += __any_sync(kWarp, (wanted >> (g * 4) & 15) != 0) ? 1 : 0;
  if (groups > kFewGroups) {
    const uint32_t marks = marks_of_a(args, tile, own);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      constexpr uint64_t kOfHalf = 0x3333333333333333u;
      const uint32_t of_row = __shfl_sync(kWarp, marks, half * 8 + own.lane / 4);
      const uint64_t right = (of_row & 1) != 0 ? ~uint64_t{0} : (of_row & 2) != 0 ? infinite : 0;
      wanted &= ~(right & kOfHalf << half * 2);
    }
  }
#pragma unroll 1
  for (int group; (group = next_group()) != kGroups;) {
    float of_columns[kPlaneVector], own_sums[4];
    sums_of_columns(args, tile, own, int64_t(own.first_col) + group * 8, aligned_b, has_block, of_columns);
#pragma unroll
    for (int i = 0; i < 4 * 4; ++i) {
      const float sum = __shfl_sync(kWarp, of_columns[i % kPlaneVector], i / kPlaneVector * 8 + own.lane / 4);
      if (i % kPlaneVector / 2 == own.lane % 4) own_sums[i / kPlaneVector * 2 + i % 2] = sum;
    }
#pragma unroll
    for (int i = 0; i < kPlaneSums; ++i) {
      if (i / 4 == group && (wanted >> i & 1) != 0) sums[i / 4][i % 4] = own_sums[i % 4];
    }
    wanted &= ~(uint64_t{15} << group * 4);
  }
}

}  // namespace sparsek::cuda
