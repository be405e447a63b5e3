// SPDX-License-Identifier: Apache-2.0
#include "cuda/lane_layout.h"

#include <algorithm>
#include <cmath>

namespace sparsek::cuda {
namespace {

constexpr int kLanes = 32, kBanks = 32, kBankBytes = 4;
constexpr int kSharedBytesOfSm = 227 * 1024;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

int power_of_two_within(int most) {
  int power = 1;
  while (2 * power <= most) power *= 2;
  return power;
}

// Turns in which shared memory serves a load of `depth` values of A by each lane, of one row of its tile.
double turns_of_load(const LaneLayout& lanes, int block_m, int block_k, int element_bytes) {
  const bool whole = lanes.depth != 3;
  const int loads = whole ? 1 : lanes.depth, bytes = whole ? lanes.depth * element_bytes : element_bytes;
  const int at_once = std::max(1, std::min(kLanes, kLanes * kBankBytes / std::max(bytes, kBankBytes)));
  // The lanes that are served first stand for all.
  int words[kBanks], count = 0, hits[kBanks] = {}, most = 1;
  for (int lane = 0; lane < at_once; ++lane) {
    int rest = lane / lanes.column_lanes;
    const int part = rest % lanes.depth_lanes;
    rest /= lanes.depth_lanes;
    const int row = rest % lanes.row_lanes, entry = rest / lanes.row_lanes;
    const int element = (entry * block_m + std::min(row, block_m - 1)) * block_k + part * lanes.depth;
    for (int b = 0; b < bytes; b += kBankBytes) {
      const int word = (element * element_bytes + b) / kBankBytes;
      if (std::find(words, words + count, word) != words + count) continue;
      words[count++] = word;
      most = std::max(most, ++hits[word % kBanks]);
    }
  }
  return loads * most * kLanes / at_once;
}

// Instructions and turns of shared memory for a block of A, by the columns of a panel.
double cost_of_block(const LaneLayout& lanes, int block_m, int block_k, ElementBytes bytes) {
  constexpr double kEntry = 12;
  const int steps = ceil_div(block_k, lanes.depth * lanes.depth_lanes);
  const double convert_a = bytes.a == 2 || bytes.a != bytes.b ? 1 : 0, convert_b = bytes.b == 2 ? 1 : 0;
  // The cores for fp64 take two turns for an instruction, and a load brings 16 bytes.
  const double wide = bytes.b == 8 ? 2 : 1;
  const double products = lanes.tile_m * lanes.tile_n * lanes.depth * wide;
  const double loads_a = lanes.tile_m * (lanes.depth == 3 ? 3 : lanes.depth == 4 && bytes.a == 8 ? 2 : 1);
  const double loads_b = lanes.tile_n == 1 && lanes.depth != 3 ? 1 : lanes.depth * (lanes.tile_n == 1 ? 1 : wide);
  const double converts = lanes.depth * (convert_a * lanes.tile_m + convert_b * lanes.tile_n);
  const double issue = products + loads_a + loads_b + converts + 3;
  const double shared = lanes.tile_m * turns_of_load(lanes, block_m, block_k, bytes.a) + loads_b;
  const int entries = lanes.rows * lanes.shares;
  // Each of the four schedulers issues an instruction while shared memory, which they have in common, serves one turn.
  const double step = std::max(issue, 4 * shared) + 0.25 * std::min(issue, 4 * shared);
  return (steps * step + kEntry) / entries;
}

// The smallest number of blocks, at least `group`, that begins at multiples of 16 bytes wherever it is; or `group`,
// where that would be too much, since the blocks are large and odd.
int32_t aligned_group(int32_t group, int block_bytes) {
  int aligned = group;
  while (aligned * block_bytes % 16 != 0) aligned *= 2;
  return aligned * block_bytes <= kMostGroupBytes / 2 ? aligned : group;
}

// A group at a time is added up: as large as there is room for, and one more on its way.
void choose_stream(LaneLayout& lanes, int block_m, int block_bytes, int sum_bytes) {
  constexpr int kBytes = 13312;
  lanes.rows *= lanes.shares;
  lanes.shares = 1;
  lanes.groups = 2;
  lanes.group = aligned_group(1, block_bytes);
  count_shared_bytes(lanes, block_m, block_bytes, sum_bytes);
  for (LaneLayout larger = lanes; larger.group < kMostGroup;) {
    larger.group *= 2;
    count_shared_bytes(larger, block_m, block_bytes, sum_bytes);
    if (larger.shared_bytes > kBytes || larger.group * block_bytes > kMostGroupBytes) break;
    lanes = larger;
  }
}

// Rows are computed together that are in shared memory together: a bundle of them takes as many instructions beside its
// blocks as seven blocks of each lane.
void choose_bundles(LaneLayout& lanes, int block_m, int block_bytes, int sum_bytes, double blocks_of_row) {
  constexpr int kBytes = 9216, kMostRows = 8;
  constexpr double kBlocksOfLane = 32;
  lanes.groups = 4;
  int group = 1;
  while (2 * group * block_bytes * lanes.groups <= kBytes && group < kMostGroup / 4) group *= 2;
  lanes.group = aligned_group(group, block_bytes);
  const double resident = (lanes.groups - 2.0) * lanes.group;
  while (lanes.rows > 1 && (lanes.rows > kMostRows || blocks_of_row > kBlocksOfLane * lanes.shares ||
                            lanes.rows * blocks_of_row > resident)) {
    lanes.rows /= 2;
    lanes.shares *= 2;
  }
  count_shared_bytes(lanes, block_m, block_bytes, sum_bytes);
}

}  // namespace

void count_shared_bytes(LaneLayout& lanes, int32_t block_m, int32_t block_bytes, int sum_bytes) {
  const int entries = lanes.groups * lanes.group, barriers = 8 * lanes.groups;
  const int rows = lanes.group >= kLeastGroupWithRows ? entries * 4 : 0;
  const int sums = block_m * lanes.column_lanes, all = lanes.group * sums;
  lanes.ring_bytes = (entries * block_bytes + rows + barriers + 15) / 16 * 16;
  lanes.shared_bytes = lanes.ring_bytes;
  if (lanes.tile_n == 1) lanes.shared_bytes += ((all + all / 32 + 1 + 2 * sums) * sum_bytes + 15) / 16 * 16;
}

LaneLayout lane_layout(int32_t block_m, int32_t block_k, int64_t n, ElementBytes bytes, double blocks_of_row) {
  LaneLayout best = {};
  if (choose_way(best, block_m, block_k, n, bytes, blocks_of_row)) return best;
  best = {};
  double least = INFINITY;
  for (const BlockTile& tile : kBlockTiles) {
    if (tile.depth % 2 == 0 && block_k % tile.depth != 0) continue;
    if (tile.tile_m > block_m || tile.depth > block_k) continue;
    for (int depth_lanes = 1; depth_lanes * tile.depth <= block_k; depth_lanes *= 2) {
      LaneLayout lanes = {};
      lanes.tile_m = tile.tile_m;
      lanes.depth = tile.depth;
      lanes.tile_n = n < 4 ? 1 : 4;
      lanes.depth_lanes = depth_lanes;
      lanes.row_lanes = ceil_div(block_m, tile.tile_m);
      const int of_block = depth_lanes * lanes.row_lanes;
      if (of_block > kLanes) continue;
      const int64_t wanted = (n + lanes.tile_n - 1) / lanes.tile_n;
      lanes.column_lanes = static_cast<int32_t>(std::min<int64_t>(wanted, kLanes / of_block));
      lanes.columns = lanes.column_lanes * lanes.tile_n;
      lanes.panels = static_cast<int32_t>((n + lanes.columns - 1) / lanes.columns);
      lanes.rows = power_of_two_within(kLanes / (of_block * lanes.column_lanes));
      lanes.shares = 1;
      const double cost = lanes.panels * cost_of_block(lanes, block_m, block_k, bytes);
      if (cost < least) {
        least = cost;
        best = lanes;
        best.cost = least / lanes.panels;
      }
    }
  }
  const int block_bytes = block_m * block_k * bytes.a, sum_bytes = std::max(4, bytes.b);
  best.way = best.tile_n == 1 ? LaneWay::kStream : LaneWay::kBundles;
  best.warps = kWarpsOfCta;
  best.teams = 1;
  if (best.tile_n == 1) {
    choose_stream(best, block_m, block_bytes, sum_bytes);
  } else {
    choose_bundles(best, block_m, block_bytes, sum_bytes, blocks_of_row);
  }
  const int room = kSharedBytesOfSm / (best.warps * best.shared_bytes);
  best.ctas = std::clamp(room, 1, ctas_of_tile(best.tile_m, best.tile_n, best.depth, bytes.a != bytes.b, sum_bytes));
  return best;
}

}  // namespace sparsek::cuda
