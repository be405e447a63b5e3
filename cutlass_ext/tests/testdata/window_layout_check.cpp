// SPDX-License-Identifier: Apache-2.0
// Asks for the layout of every block that a row_window kernel is for and many numbers of columns, and requires that
// each column is one of a panel, and that the rows and blocks that warps have at once have their places. Prints the
// first wrong answer and exits with 1.
#include "cuda/window_layout.h"

#include <cstdio>
#include <initializer_list>

namespace {

using namespace sparsek::cuda;

bool is_power_of_two(int32_t x) { return x > 0 && (x & (x - 1)) == 0; }

bool is_right(const LaneLayout& lanes, int block, int64_t n, int bytes) {
  const int piece = kPieceBytes / bytes, block_bytes = block * block * bytes, ring = lanes.group * lanes.groups;
  const bool has_columns =
      lanes.columns == lanes.column_lanes * lanes.tile_n && int64_t{lanes.panels} * lanes.columns >= n &&
      int64_t{lanes.panels - 1} * lanes.columns < n && (lanes.tile_n == piece || lanes.tile_n == 2 * piece);
  // The begins of a warp's rows, and of the one behind them, are in one load of 32 lanes; a lane waits for a barrier.
  const bool has_rows = lanes.column_lanes * lanes.rows * lanes.shares == 32 && is_power_of_two(lanes.column_lanes) &&
                        is_power_of_two(lanes.rows) && is_power_of_two(lanes.shares) && lanes.rows < 32;
  const bool has_ring = is_power_of_two(lanes.group) && is_power_of_two(lanes.groups) && lanes.groups >= 2 &&
                        lanes.groups <= 32 && lanes.group % 4 == 0 && lanes.group * block_bytes % 16 == 0;
  return has_columns && has_rows && has_ring && lanes.way == LaneWay::kWindow && lanes.cost > 0 &&
         lanes.shared_bytes >= ring * (block_bytes + 4) + lanes.groups * 16 && lanes.shared_bytes % 16 == 0 &&
         lanes.shared_bytes <= kMostWindowBytes + 1024 && warps_of_window(block, lanes.tile_n / piece, bytes) <= 31;
}

}  // namespace

int main() {
  for (const int bytes : {4, 8}) {
    for (const int block : {3, 4, 6}) {
      for (const int64_t n : {1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 64, 128, 1000, 65536}) {
        for (const double blocks_of_row : {0., 0.1, 7., 27., 1e6}) {
          const LaneLayout lanes = window_layout(block, n, bytes, blocks_of_row);
          if (is_right(lanes, block, n, bytes)) continue;
          std::printf("%d x %d of %d bytes, %lld columns, %g blocks a row\n", block, block, bytes,
                      static_cast<long long>(n), blocks_of_row);
          return 1;
        }
      }
    }
  }
  return 0;
}
