// SPDX-License-Identifier: Apache-2.0
// How the lanes of a warp share the blocks of A in the few_columns family, and how much of A a warp has in shared
// memory at once. Chosen once for a plan: the order of summation follows from it.
#pragma once

#include <cstdint>

#include "cuda/lane_ways.h"

namespace sparsek::cuda {

// A lane computes `tile_m` rows of a block by `tile_n` columns, of `depth` columns of the block at a time. Lanes, the
// first the fastest: column_lanes, depth_lanes, row_lanes, entry lanes. The entry lanes are `rows` block rows at once,
// with `shares` lanes each, or one block row, where rows are long.
struct LaneLayout {
  LaneWay way;
  int32_t tile_m, tile_n, depth;
  int32_t column_lanes, depth_lanes, row_lanes;
  int32_t rows, shares;
  int32_t group;    // blocks that are copied to shared memory at a time, a power of two
  int32_t groups;   // of the ring of a warp, a power of two
  int32_t columns;  // of C of a panel: column_lanes * tile_n
  int32_t panels;
  int32_t shared_bytes;  // of a warp,
  int32_t ring_bytes;  // of which its groups of blocks take so many; behind them it has sums of blocks, if tile_n is 1
  int32_t warps;       // of a CTA, and
  int32_t teams;       // of a warp, that have a chunk each; 1 where a warp has one
  int32_t ctas;        // of an SM that run at once
  double cost;         // of a block: what a warp issues, or waits for shared memory instead; by each panel
};

constexpr int kLeastGroupWithRows = 4;  // a group of so many blocks has rows of B of whole 16 bytes
constexpr int kMostBlock = 32;          // rows and columns of a block
constexpr int kMostGroup = 512, kMostGroupBytes = 8192;
constexpr int kMostGroups = 4, kMostSharedBytesOfWarp = 33792;

// The parts of a block for which there are kernels: rows, and columns at a time.
struct BlockTile {
  int tile_m, depth;
};
constexpr BlockTile kBlockTiles[] = {{1, 1}, {1, 2}, {2, 2}, {4, 2}, {1, 3}, {3, 3}, {4, 3}, {1, 4}, {2, 4}, {4, 4}};

// CTAs of an SM of the ways that serve every block, by the registers that a thread takes.
constexpr int ctas_of_tile(int tile_m, int tile_n, int depth, bool is_mixed, int sum_bytes) {
  const int products = tile_m * tile_n * depth;
  const bool large = products >= 36 || (is_mixed && tile_n == 1 && products >= 16);
  return sum_bytes == 8 && large ? 3 : 4;
}

// Fills in how much a warp has in shared memory, which follows from the rest.
// sum_bytes: of a sum.
void count_shared_bytes(LaneLayout& lanes, int32_t block_m, int32_t block_bytes, int sum_bytes);

// block_m and block_k are at most kMostBlock; n is above 0.
LaneLayout lane_layout(int32_t block_m, int32_t block_k, int64_t n, ElementBytes bytes, double blocks_of_row);

}  // namespace sparsek::cuda
