// SPDX-License-Identifier: Apache-2.0
// Asks for the lanes' shares of every block that is served and many numbers of columns, and requires that a warp has
// them all and has room for them. Prints the first wrong answer and exits with 1.
#include "cuda/lane_layout.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace {

using namespace sparsek::cuda;

bool is_power_of_two(int32_t x) { return x > 0 && (x & (x - 1)) == 0; }

// Of all ways: every column is one of a panel, and there are lanes for all shares of a block.
bool has_all(const LaneLayout& lanes, int block_m, int64_t n) {
  const int of_entry = lanes.column_lanes * lanes.depth_lanes * lanes.row_lanes;
  return lanes.columns == lanes.column_lanes * lanes.tile_n && int64_t{lanes.panels} * lanes.columns >= n &&
         int64_t{lanes.panels - 1} * lanes.columns < n && of_entry * lanes.rows * lanes.shares <= 32 &&
         is_power_of_two(lanes.rows) && is_power_of_two(lanes.shares) && lanes.cost > 0 &&
         (lanes.way == LaneWay::kTensor
              ? lanes.tile_m * 8 == block_m
              : lanes.row_lanes * lanes.tile_m >= block_m && (lanes.row_lanes - 1) * lanes.tile_m < block_m);
}

// Ways that serve some blocks only.
bool is_right_way(const LaneLayout& lanes, int block_m, int block_k, int64_t n, ElementBytes elements) {
  const int bytes = elements.a;
  const bool is_for_all_types =
      lanes.way == LaneWay::kSingles || lanes.way == LaneWay::kLines || lanes.way == LaneWay::kTeams;
  if (elements.b != bytes && !is_for_all_types) return false;
  if (!has_all(lanes, block_m, n) || lanes.ctas < 1 || lanes.warps < 1) return false;
  if (lanes.way != LaneWay::kLines && lanes.way != LaneWay::kTeams && lanes.teams != 1) return false;
  const int block_bytes = block_m * block_k * bytes;
  switch (lanes.way) {
    case LaneWay::kSingles:
      return block_m == 1 && block_k == 1 && n < 4 && lanes.columns == 1 && lanes.shares * lanes.rows == 32;
    case LaneWay::kLines:
      // A team has a row of B in a panel, which is a line, and a chunk.
      return block_m == 1 && block_k == 1 && n * elements.b >= 128 && lanes.columns * elements.b == 128 &&
             lanes.column_lanes * lanes.teams == 32 && lanes.rows == lanes.teams && lanes.shares == 1 &&
             lanes.shared_bytes == 0;
    case LaneWay::kTeams:
      // A part of the warp has a row of A and a chunk; its teams have 16 bytes of a row of B a lane. Of a part of a row
      // of B in a panel, each lane has all or nothing.
      return block_m == 1 && block_k == 1 && n >= 4 && lanes.tile_n * elements.b == 16 && lanes.column_lanes <= 8 &&
             is_power_of_two(lanes.column_lanes) && (n * elements.b >= 128 || n % lanes.tile_n == 0) &&
             lanes.column_lanes * lanes.shares * lanes.teams == 32 && lanes.rows == lanes.teams &&
             lanes.shared_bytes == 0;
    case LaneWay::kTensor:
      return bytes == 2 && block_m % 8 == 0 && block_k % 8 == 0 && lanes.shared_bytes == 0;
    case LaneWay::kFixed:
      // A group begins at a multiple of 16 bytes, a row's begin and the next one's are in one load of 32, and all rows
      // of a bundle are.
      return block_m == block_k && is_fixed(block_m, bytes) && lanes.group * block_bytes % 16 == 0 &&
             is_power_of_two(lanes.column_lanes) && is_power_of_two(lanes.row_lanes) && lanes.rows <= 16 &&
             is_power_of_two(lanes.group) && is_power_of_two(lanes.groups) && lanes.group >= kLeastGroupWithRows &&
             lanes.shared_bytes >= lanes.groups * (lanes.group * (block_bytes + 4) + 8) &&
             lanes.shared_bytes % 16 == 0 && lanes.shared_bytes <= kMostSharedBytesOfFixed;
    default:
      return false;
  }
}

bool is_right(const LaneLayout& lanes, int block_m, int block_k, int64_t n, ElementBytes elements) {
  if (lanes.way != LaneWay::kStream && lanes.way != LaneWay::kBundles) {
    return is_right_way(lanes, block_m, block_k, n, elements);
  }
  const bool has_kernel = std::any_of(std::begin(kBlockTiles), std::end(kBlockTiles), [&](const BlockTile& tile) {
    return tile.tile_m == lanes.tile_m && tile.depth == lanes.depth;
  });
  const int all = lanes.column_lanes * lanes.depth_lanes * lanes.row_lanes * lanes.rows * lanes.shares;
  const int group_bytes = lanes.group * block_m * block_k * elements.a;
  return has_kernel && (lanes.tile_n == 1 || lanes.tile_n == 4) && all >= 1 && all <= 32 && lanes.teams == 1 &&
         lanes.row_lanes * lanes.tile_m >= block_m && (lanes.row_lanes - 1) * lanes.tile_m < block_m &&
         (lanes.depth == 1 || lanes.depth == 3 || block_k % lanes.depth == 0) && lanes.depth <= block_k &&
         is_power_of_two(lanes.depth_lanes) && is_power_of_two(lanes.rows) && is_power_of_two(lanes.shares) &&
         is_power_of_two(lanes.group) && is_power_of_two(lanes.groups) && lanes.groups <= kMostGroups &&
         lanes.columns == lanes.column_lanes * lanes.tile_n && int64_t{lanes.panels} * lanes.columns >= n &&
         int64_t{lanes.panels - 1} * lanes.columns < n && lanes.group <= kMostGroup && group_bytes <= kMostGroupBytes &&
         lanes.shared_bytes <= kMostSharedBytesOfWarp && lanes.rows <= (lanes.tile_n == 1 ? 32 : 16) &&
         lanes.shared_bytes >= lanes.groups * (group_bytes + 8) && lanes.shared_bytes % 16 == 0;
}

}  // namespace

int main() {
  constexpr ElementBytes kElements[] = {{2, 2}, {4, 4}, {8, 8}, {2, 4}, {2, 8}, {4, 8}};
  for (const ElementBytes elements : kElements) {
    for (int block_m = 1; block_m <= kMostBlock; ++block_m) {
      for (int block_k = 1; block_k <= kMostBlock; ++block_k) {
        for (const int64_t n : {1, 2, 3, 4, 5, 8, 16, 24, 31, 128, 1000, 100000}) {
          for (const double blocks_of_row : {0.1, 7., 27., 82., 1e6}) {
            const LaneLayout lanes = lane_layout(block_m, block_k, n, elements, blocks_of_row);
            if (is_right(lanes, block_m, block_k, n, elements)) continue;
            std::printf("%d x %d of %d and %d bytes, %lld columns, %g blocks a row\n", block_m, block_k, elements.a,
                        elements.b, static_cast<long long>(n), blocks_of_row);
            return 1;
          }
        }
      }
    }
  }
  return 0;
}
