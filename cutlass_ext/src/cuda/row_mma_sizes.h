// SPDX-License-Identifier: Apache-2.0
// How many warps of a CTA share a block row in the row_mma family. The cost model asks too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sparsek::cuda::row_mma {

constexpr int kMostBlock = 32, kMostWarps = 16;
constexpr int kLanesOfRow = 4;  // lanes that share a row of A, and the columns of a step
constexpr int row_tiles(int block_m) { return (block_m + 7) / 8; }
// Instructions of a step, by registers. Each takes four columns of A of a lane.
constexpr int depth_of(int row_tiles) { return row_tiles <= 2 ? 2 : 1; }
constexpr int step_of(int row_tiles) { return depth_of(row_tiles) * 4 * kLanesOfRow; }

// Warps of an SM that run at once, by the registers that a thread takes, and the SMs for which warps are counted: the
// order of sums follows from these, and is the same on every GPU.
constexpr int warps_of_sm(int row_tiles) { return row_tiles == 1 ? 20 : 16; }
constexpr int kSms = 132;

// Of a block row of the mean length, the columns of A in steps.
constexpr int64_t mean_steps(int64_t block_rows, int64_t nnzb, int block_m, int block_k) {
  const int64_t of_step = block_rows * step_of(row_tiles(block_m));
  return (nnzb * block_k + of_step - 1) / of_step;
}

struct SharedSteps {
  int warps;        // of a CTA
  int64_t of_warp;  // steps
  int at_once;      // CTAs of an SM
};

// As many warps as there is room for while all tiles run at once, but no more than leave each fewer steps.
constexpr SharedSteps shared_steps(int64_t tiles, int64_t steps, int block_m) {
  const int of_sm = warps_of_sm(row_tiles(block_m));
  int most = kMostWarps;
  while (most > 1 && int64_t{of_sm / most} * kSms < tiles) --most;
  const int64_t of_warp = std::max<int64_t>(1, (steps + most - 1) / most);
  const int warps = static_cast<int>(std::max<int64_t>(1, (steps + of_warp - 1) / of_warp));
  return {warps, of_warp, of_sm / warps};
}

}  // namespace sparsek::cuda::row_mma
