// SPDX-License-Identifier: Apache-2.0
// How the lanes of a warp share the blocks of A in the row_window family, and how many blocks a CTA has in shared
// memory.
#pragma once

#include <cstdint>

#include "cuda/lane_layout.h"

namespace sparsek::cuda {

// A lane has pieces of 16 bytes of a row of C: one, or, of larger blocks, two where N is so many columns that a panel
// of them can be two lines of L1 wide.
constexpr int kPieceBytes = 16, kLineBytes = 128;
constexpr int most_pieces(int block) { return block == 3 ? 1 : 2; }

// Warps of a CTA that multiply; one more requests copies. With more, threads would have too few registers.
constexpr int warps_of_window(int block, int pieces, int element_bytes) {
  if (block == 3) return 14;
  if (block == 4) return pieces == 1 ? 12 : 11;
  return (pieces == 1 ? 12 : 10) - (element_bytes == 8 ? 2 : 0);
}

// Columns of the block that a lane has at a time.
constexpr int step_of_window(int block) { return block == 6 ? 3 : block; }

constexpr int kMostWindowBytes = 163840;

// Square blocks of a size that has kernels; n is above 0.
LaneLayout window_layout(int32_t block, int64_t n, int element_bytes, double blocks_of_row);

}  // namespace sparsek::cuda
