// SPDX-License-Identifier: Apache-2.0
// Keeps absent blocks out of the result, for kernels that multiply them as zeros.
//
// Zeros times a finite B add nothing. Zeros times Inf or NaN give NaN, and an accumulator that was NaN once stays NaN.
// So a result without NaN is right, and a result with NaN is computed again here from only the blocks that exist:
// slowly, but only where C has a NaN or an absent block meets one. Each time is counted, since a kernel that produced
// NaNs by a defect would otherwise only be slow, and not wrong.
#pragma once

#include "cuda/epilogue.cuh"
#include "cuda/launch_args.h"
#include "cuda/mma_sync.cuh"

namespace sparsek::cuda {

// All ones where x or y is NaN, else 0.
__device__ inline uint32_t nan_mask(float x, float y) {
  uint32_t mask;
  asm("set.nan.u32.f32 %0, %1, %2;" : "=r"(mask) : "f"(x), "f"(y));
  return mask;
}

// Whether any of the warp's accumulators within C is NaN. Arguments as in store_rows.
template <int Groups>
__device__ bool any_nan(const LaunchArgs& args, const float (&acc)[Groups][4], const uint32_t (&row)[2],
                        int64_t first_col, int lane) {
  uint32_t found[2] = {0, 0};
  if (first_col + Groups * 8 <= args.n) {
#pragma unroll
    for (int i = 0; i < Groups * 2; ++i) found[i % 2] |= nan_mask(acc[i / 2][i % 2 * 2], acc[i / 2][i % 2 * 2 + 1]);
  } else {
    const int columns = int(args.n - first_col);  // columns of C from first_col on
#pragma unroll
    for (int i = 0; i < Groups * 2; ++i) {
      const int col = i / 2 * 8 + lane % 4 * 2;
      if (col < columns)
        found[i % 2] |= nan_mask(acc[i / 2][i % 2 * 2], col + 1 < columns ? acc[i / 2][i % 2 * 2 + 1] : 0.f);
    }
  }
  return __any_sync(0xffffffffu, (found[0] && row[0] < args.rows) || (found[1] && row[1] < args.rows));
}

// Two neighbours of a column of B (k, k + 1) in one register; zero outside of B.
__device__ inline uint32_t load_pair(const LaunchArgs& args, int64_t k, int64_t col) {
  const auto* const b = static_cast<const uint16_t*>(args.b);
  const auto at = [&](int64_t row) -> uint32_t {
    return row < args.cols && col < args.n ? b[row * args.ldb + col] : 0;
  };
  return at(k) | at(k + 1) << 16;
}

// The sum of the products of the lane's half h: d[2 h] and d[2 h + 1], columns first_col + 2 (lane % 4) on.
template <class Element>
__device__ void sum_half(const LaunchArgs& args, const WorkTile& tile, int slot, uint32_t row, int h, int64_t first_col,
                         int lane, float (&d)[4]) {
  for (int e = tile.entry_begin; e < tile.entry_begin + tile.entry_count; ++e) {
    const int32_t block = args.entry_block[int64_t(e) * args.slots + slot];
    if (block == kNoBlock) continue;
    const auto* const a_row =
        static_cast<const uint16_t*>(args.values) + (int64_t(block) * args.block_m + row % args.block_m) * args.block_k;
#pragma unroll 1
    for (int k = 0; k < args.block_k; k += 16) {
      const int at = k + lane % 4 * 2;
      const bool second = k + 8 < args.block_k;
      const uint32_t a0 = *reinterpret_cast<const uint32_t*>(a_row + at);
      const uint32_t a1 = second ? *reinterpret_cast<const uint32_t*>(a_row + at + 8) : 0;
      const int64_t b_row = int64_t(args.entry_k[e]) + at;
      const int64_t col = first_col + lane / 4;
      const uint32_t b0 = load_pair(args, b_row, col), b1 = second ? load_pair(args, b_row + 8, col) : 0;
      const uint32_t a[4] = {h == 0 ? a0 : 0, h == 1 ? a0 : 0, h == 0 ? a1 : 0, h == 1 ? a1 : 0};
      mma_m16n8k16<Element>(d, a, b0, b1);
    }
  }
}

// Computes the sums of a warp's 16 rows, the first eight in slot[0] and the others in slot[1], from only the blocks of
// these slots, and counts that in args.recomputed. Calls put(h, col, x, y) with the sums of columns first_col + col and
// first_col + col + 1 in the lane's row of half h; sums beyond end_col or C are undefined. row: the lane's row of C in
// each half. Written for little code and few registers rather than for speed.
template <class Element, class Put>
__device__ void sum_exactly(const LaunchArgs& args, const WorkTile& tile, const int (&slot)[2],
                            const uint32_t (&row)[2], int64_t first_col, int64_t end_col, int lane, const Put& put) {
  if (lane == 0) atomicAdd(args.recomputed, 1ull);
#pragma unroll 1
  for (int64_t group = first_col; group < min(end_col, args.n); group += 8) {
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {  // the halves are separate, since they may lie in different block rows
      float d[4] = {};
      sum_half<Element>(args, tile, h == 0 ? slot[0] : slot[1], h == 0 ? row[0] : row[1], h, group, lane, d);
      put(h, int(group - first_col) + lane % 4 * 2, h == 0 ? d[0] : d[2], h == 0 ? d[1] : d[3]);
    }
  }
}

// Stores these sums as elements of C.
template <class Element>
__device__ void store_exactly(const LaunchArgs& args, const WorkTile& tile, const int (&slot)[2],
                              const uint32_t (&row)[2], int64_t first_col, int64_t end_col, int lane) {
  sum_exactly<Element>(args, tile, slot, row, first_col, end_col, lane, [&](int h, int in_tile, float x, float y) {
    const uint32_t at = h == 0 ? row[0] : row[1];
    const int64_t col = first_col + in_tile;
    if (at < args.rows && col < args.n) write_element(args, at, col, x);
    if (at < args.rows && col + 1 < args.n) write_element(args, at, col + 1, y);
  });
}

}  // namespace sparsek::cuda
