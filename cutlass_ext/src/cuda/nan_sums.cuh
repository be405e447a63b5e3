// SPDX-License-Identifier: Apache-2.0
// Finds NaN in sums, for kernels that multiply absent blocks as zeros, and hold their sums in the layout of D in
// mma_sync.cuh.
//
// Zeros times a finite B add nothing. Zeros times Inf or NaN give NaN, and an accumulator that was NaN once stays NaN.
// So sums without NaN are right, and those of a slab with NaN, 16 rows of a tile, have to be computed again from only
// the blocks that exist. Each time is counted, since a kernel that produced NaNs by a defect would otherwise only be
// slow, and not wrong.
#pragma once

#include "cuda/launch_args.h"

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

// Bit i: one of the warp's accumulators within C is NaN in the 64 columns from first_col + 64 i on. Other arguments as
// in store_rows.
template <int Groups>
__device__ uint32_t chunks_with_nan(const LaunchArgs& args, const float (&acc)[Groups][4], const uint32_t (&row)[2],
                                    int64_t first_col, int lane) {
  constexpr int kTogether = 8;  // groups of 8 columns
  const bool whole = first_col + Groups * 8 <= args.n;
  const int columns = int(min(int64_t(Groups * 8), args.n - first_col)) - lane % 4 * 2;  // from the lane's first on
  uint32_t chunks = 0;
#pragma unroll
  for (int chunk = 0; chunk < Groups / kTogether; ++chunk) {
    uint32_t found[2] = {0, 0};
    if (whole) {
#pragma unroll
      for (int i = 0; i < kTogether * 2; ++i) {
        const float(&sums)[4] = acc[chunk * kTogether + i / 2];
        found[i % 2] |= nan_mask(sums[i % 2 * 2], sums[i % 2 * 2 + 1]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kTogether * 2; ++i) {
        const int g = chunk * kTogether + i / 2;
        if (columns > g * 8) {
          found[i % 2] |= nan_mask(acc[g][i % 2 * 2], columns > g * 8 + 1 ? acc[g][i % 2 * 2 + 1] : 0.f);
        }
      }
    }
    const bool any = (found[0] && row[0] < args.rows) || (found[1] && row[1] < args.rows);
    chunks |= uint32_t(__any_sync(0xffffffffu, any)) << chunk;
  }
  return chunks;
}

// Bit i: one of the warp's accumulators is NaN in the 8 columns from first_col + 8 i on, of which some are in C, and in
// a row of C.
template <int Groups>
__device__ uint32_t groups_with_nan(const LaunchArgs& args, const float (&acc)[Groups][4], const uint32_t (&row)[2],
                                    int64_t first_col) {
  uint32_t found[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < Groups * 2; ++i) {
    found[i % 2] |= nan_mask(acc[i / 2][i % 2 * 2], acc[i / 2][i % 2 * 2 + 1]) & 1u << i / 2;
  }
  const uint32_t of_lane = (row[0] < args.rows ? found[0] : 0) | (row[1] < args.rows ? found[1] : 0);
  const int64_t groups = (args.n - first_col + 7) / 8;
  return __reduce_or_sync(0xffffffffu, of_lane) & (groups >= 32 ? 0xffffffffu : (1u << groups) - 1);
}

// Bit h: slot[h] has a block in one of the tile's entries. By all lanes of a warp.
__device__ inline uint32_t slots_with_blocks(const LaunchArgs& args, const WorkTile& tile, int slots,
                                             const uint32_t (&slot)[2], int lane) {
  uint32_t found = 0;
#pragma unroll 1
  for (int first = 0; first < tile.entry_count && found != 3; first += 32) {
    // Lanes behind the last entry look at that.
    const int64_t entry = int64_t(tile.entry_begin) + min(first + lane, tile.entry_count - 1);
    const int32_t* const blocks = args.entry_block + entry * slots;
    uint32_t here = 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) here |= uint32_t(__ldg(blocks + slot[h]) != kNoBlock) << h;
    found |= __reduce_or_sync(0xffffffffu, here);
  }
  return found;
}

// Whether all of the warp's accumulators are NaN in the rows that count: of the lane's two rows those that `counts`
// says. In all columns, those beyond C too.
template <int Groups>
__device__ bool all_nan(const float (&acc)[Groups][4], const bool (&counts)[2]) {
  float least[4] = {acc[0][0], acc[0][1], acc[0][2], acc[0][3]};  // fminf is NaN only where both are
#pragma unroll
  for (int i = 4; i < Groups * 4; ++i) least[i % 4] = fminf(least[i % 4], acc[i / 4][i % 4]);
  const bool ends[2] = {!counts[0] || isnan(fminf(least[0], least[1])), !counts[1] || isnan(fminf(least[2], least[3]))};
  return __all_sync(0xffffffffu, ends[0] && ends[1]);
}

}  // namespace sparsek::cuda
