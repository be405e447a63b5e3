// SPDX-License-Identifier: Apache-2.0
#include "cuda/lane_ways.h"

#include <algorithm>
#include <cmath>

#include "cuda/chunk_args.h"

namespace sparsek::cuda {
namespace {

constexpr int kLanes = 32;

int32_t ceil_div(int64_t a, int64_t b) { return static_cast<int32_t>((a + b - 1) / b); }

void choose_columns(LaneLayout& lanes, int64_t n, int most_lanes) {
  lanes.column_lanes = 1;
  while (lanes.column_lanes < most_lanes && int64_t{lanes.column_lanes} * lanes.tile_n < n) lanes.column_lanes *= 2;
  lanes.columns = lanes.column_lanes * lanes.tile_n;
  lanes.panels = ceil_div(n, lanes.columns);
}

void choose_singles(LaneLayout& lanes, int64_t n, ElementBytes bytes, double blocks_of_row) {
  lanes.way = LaneWay::kSingles;
  lanes.tile_n = lanes.column_lanes = lanes.columns = 1;
  lanes.panels = static_cast<int32_t>(n);
  lanes.rows = 1;
  lanes.shares = kLanes;  // of a chunk's nonzeros, whatever their rows
  lanes.ctas = ctas_of_singles(bytes.b);
  lanes.cost = 0.4 + 1.3 / std::max(1., blocks_of_row);
}

void choose_lines(LaneLayout& lanes, int64_t n, ElementBytes bytes, double blocks_of_row) {
  lanes.way = LaneWay::kLines;
  lanes.tile_n = kBytesOfLane / bytes.b;
  choose_columns(lanes, n, kLanesOfLine);
  lanes.rows = lanes.teams = kTeamsOfWarp;
  lanes.shares = 1;
  lanes.warps = kWarpsOfLines;
  lanes.ctas = kCtasOfLines;
  const double wide = bytes.b == 8 ? 2 : 1, convert = bytes.b == 2 ? 2 : 1;
  const double of_block = wide * convert * lanes.tile_n + 6, of_row = 20 + 2 * lanes.tile_n;
  lanes.cost = of_block / lanes.rows + of_row / std::max(1., blocks_of_row);
}

// Whether rows are long enough for kTeams, by the lanes of a team. In shorter ones kLines has rows one after the other,
// and kFixed several beside each other, which takes less by up to eight columns of 4 or 8 bytes.
bool is_for_teams(int64_t n, int element_bytes, double blocks_of_row) {
  constexpr double kLeastOfLine = 32, kLeast = 20, kLeastOfFew = 48;
  constexpr int64_t kFew = 8;
  const int64_t bytes = n * element_bytes;
  if (bytes >= kBytesOfLane * kLanesOfLine) return blocks_of_row >= kLeastOfLine;
  const bool few = bytes == kBytesOfLane || (n <= kFew && element_bytes > 2);
  return bytes % kBytesOfLane == 0 && blocks_of_row >= (few ? kLeastOfFew : kLeast);
}

// Of a row of so many nonzeros, the share of those that its teams could take in the steps which they need.
double filled(double of_row, double of_step) { return of_row / (std::ceil(of_row / of_step) * of_step); }

void choose_teams(LaneLayout& lanes, int64_t n, ElementBytes bytes, double blocks_of_row) {
  constexpr double kFilled = 0.6;
  lanes.way = LaneWay::kTeams;
  lanes.tile_n = kBytesOfLane / bytes.b;
  choose_columns(lanes, n, kLanesOfLine);
  // As many teams a row as leave most of their steps full: so there are few chunks, and few rows in several.
  lanes.shares = kLanes / lanes.column_lanes;
  const double at_once = lines_of_team(lanes.column_lanes);
  while (lanes.shares > 1 && filled(blocks_of_row, at_once * lanes.shares) < kFilled) lanes.shares /= 2;
  lanes.rows = lanes.teams = kLanes / (lanes.column_lanes * lanes.shares);
  lanes.warps = kWarpsOfLines;
  lanes.ctas = kCtasOfLines;
  const double wide = bytes.b == 8 ? 2 : 1, convert = bytes.b == 2 ? 2 : 1;
  const double of_block = wide * convert * lanes.tile_n + 9,
               steps = std::ceil(blocks_of_row / (at_once * lanes.shares));
  const double of_row = steps * (at_once * of_block + 40) + 60 + 2 * wide * lanes.tile_n * std::log2(lanes.shares);
  lanes.cost = of_row / (lanes.rows * std::max(1., blocks_of_row));
}

void choose_tensor(LaneLayout& lanes, int32_t block_m, int32_t block_k, int64_t n, double blocks_of_row) {
  lanes.way = LaneWay::kTensor;
  lanes.tile_m = block_m / 8;
  lanes.tile_n = n <= 8 ? 1 : n <= 32 ? 4 : 8;
  lanes.column_lanes = n == 1 ? 1 : 8;  // a vector is multiplied otherwise
  lanes.columns = lanes.column_lanes * lanes.tile_n;
  lanes.panels = ceil_div(n, lanes.columns);
  lanes.rows = lanes.shares = 1;
  lanes.warps = warps_of_tensor(lanes.tile_m, lanes.tile_n);
  lanes.ctas = ctas_of_tensor(lanes.tile_m, lanes.tile_n);
  const double units = block_k / 8., steps = std::max(1., std::ceil(blocks_of_row * units / 4));
  const double tiles = (lanes.tile_n + 1) / 2;  // of 16 columns
  const double step = 60 + 8 + lanes.tile_m + tiles * (8 + 2 * lanes.tile_m);
  lanes.cost = (steps * step + 40 + 10 * lanes.tile_m * lanes.tile_n) / std::max(1., blocks_of_row);
}

void choose_fixed(LaneLayout& lanes, int32_t block, int64_t n, int element_bytes, double blocks_of_row) {
  constexpr int kBytes = 11264, kMostGroup = 256, kMostRows = 16;
  lanes.way = LaneWay::kFixed;
  lanes.tile_n = n < 4 ? 1 : n >= 32 && is_wide(block, element_bytes) ? 8 : 4;
  const FixedTile tile = fixed_tile(block, lanes.tile_n, element_bytes);
  lanes.tile_m = tile.rows;
  lanes.depth = tile.step;
  lanes.row_lanes = ceil_div(block, tile.rows);
  choose_columns(lanes, n, kLanes / lanes.row_lanes);
  const int block_bytes = block * block * element_bytes;
  // Two groups for a vector; else four of half the size.
  lanes.groups = lanes.tile_n == 1 ? 2 : 4;
  lanes.group = 8;
  const int of_group = lanes.groups * (block_bytes + 4);
  while (lanes.group < kMostGroup && 2 * lanes.group * of_group <= kBytes) lanes.group *= 2;
  // A lane has three blocks of a row at least, and the rows that a warp has at once fit in its groups.
  const int entries = kLanes / (lanes.column_lanes * lanes.row_lanes), most = lanes.tile_n == 1                ? 8
                                                                              : lanes.tile_n == 4 && block > 4 ? 4
                                                                                                               : 2;
  lanes.shares = 1;
  const auto needs_more = [&] {
    const int rows = entries / lanes.shares;
    const bool many = rows > kMostRows || rows * blocks_of_row > lanes.groups * lanes.group;
    return many || (lanes.shares < most && blocks_of_row >= 6 * lanes.shares);
  };
  while (lanes.shares < entries && needs_more()) lanes.shares *= 2;
  lanes.rows = entries / lanes.shares;
  lanes.shared_bytes = (lanes.groups * (lanes.group * (block_bytes + 4) + 8) + 15) / 16 * 16;
  lanes.ring_bytes = lanes.shared_bytes;
  lanes.warps = warps_of_fixed(lanes.tile_n);
  lanes.ctas = ctas_of_fixed(block, lanes.tile_n, element_bytes);
  const double wide = element_bytes == 8 ? 2 : 1;  // instructions of the fp64 cores, and loads, count as two
  const double products = wide * tile.rows * block * lanes.tile_n, loads = wide * (tile.rows * block + block);
  const double of_lane = std::ceil(blocks_of_row / lanes.shares) * (products + loads + 14);
  lanes.cost = (of_lane + 100 + 5 * tile.rows * lanes.tile_n) / (lanes.rows * std::max(1., blocks_of_row));
}

}  // namespace

bool choose_way(LaneLayout& lanes, int32_t block_m, int32_t block_k, int64_t n, ElementBytes bytes,
                double blocks_of_row) {
  lanes.tile_m = lanes.depth = lanes.depth_lanes = lanes.row_lanes = 1;
  lanes.warps = kWarpsOfCta;
  lanes.teams = 1;
  if (block_m == 1 && block_k == 1 && n < 4) {
    choose_singles(lanes, n, bytes, blocks_of_row);
  } else if (block_m == 1 && block_k == 1 && is_for_teams(n, bytes.b, blocks_of_row)) {
    choose_teams(lanes, n, bytes, blocks_of_row);
  } else if (block_m == 1 && block_k == 1 && n * bytes.b >= kBytesOfLane * kLanesOfLine) {
    choose_lines(lanes, n, bytes, blocks_of_row);
  } else if (bytes.a != bytes.b) {
    return false;
  } else if (bytes.a == 2 && block_m % 8 == 0 && block_k % 8 == 0) {
    choose_tensor(lanes, block_m, block_k, n, blocks_of_row);
  } else if (block_m == block_k && is_fixed(block_m, bytes.a) && n <= most_columns_of_fixed(block_m, bytes.a)) {
    choose_fixed(lanes, block_m, n, bytes.a, blocks_of_row);
  } else {
    return false;
  }
  return true;
}

}  // namespace sparsek::cuda
