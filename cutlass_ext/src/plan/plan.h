// SPDX-License-Identifier: Apache-2.0
// The plan: a flat work list made once from a pattern, read by the CUDA kernels and by the CPU back-end.
//
//   C is cut into tiles of tile_m x tile_n. The rows of a tile are a row group, made of slots: slot s of group g is
//   slot_rows rows from slot_row[g, s] on, all in one block row. The block rows of a group share one union list of
//   block columns; each of its entries is one step of the sparse outer loop: load the block row of B that begins at row
//   entry_k once, multiply it by the block of each slot that has one there.
//
//   tiles   in the order in which the workers (CTAs or threads) take them, each the next one when it is done with the
//           last; a tile names its row group and the range of the group's entries
//
//   A tile whose entries would keep one worker busy when the others are done may be split: it is scheduled in parts,
//   each a range of the entries. The sums of the parts go into a workspace, and are added up when all are complete
//   (plan/split.h).
//
//   Kernels that read the whole matrix once for all columns have chunks instead of tiles (plan/row_chunks.h): of a plan
//   with chunks, the entries are the blocks in their order.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bsr_index.h"
#include "plan/row_chunks.h"
#include "plan/work_tile.h"

namespace sparsek {

class RowOrders;

struct PlanShape {
  int32_t tile_m = 0, tile_n = 0;
  int32_t workers = 1;           // CTAs or threads that run at once
  int64_t n = 0;                 // columns of B and C
  int32_t panels_in_flight = 1;  // panels of tile_n columns whose tiles follow each other; 0: chosen by the planner
  int32_t element_bytes = 2;     // of B, by which panels_in_flight is chosen
  double tile_cost = 0;          // fixed cost of a tile in units of one entry
  bool any_rows = false;         // a group may hold any block rows, not only neighbours

  // For kernels that can split tiles; costs in units of one entry, like tile_cost.
  int32_t most_parts = 0;  // limit on the parts of all split tiles together, at most kMostParts; 0: no tile is split
  double join_cost = 0;    // fixed cost of adding parts up
  double part_cost = 0;    // cost of adding up each further part

  int32_t chunks = 0;         // of a plan for a kernel that takes chunks, which has no tiles; else 0
  int64_t longest_whole = 0;  // blocks of a block row that is not cut, for ChunkRule
};

struct Plan {
  PlanShape shape;
  int32_t slots = 1;              // slots of a row group: tile_m / slot_rows
  int32_t slot_rows = 1;          // the greatest common divisor of tile_m and bm
  std::vector<int64_t> slot_row;  // (groups, slots): first row of C; without any_rows (g * slots + s) * slot_rows
  std::vector<int32_t> entry_k;   // (entries): first row of B
  // (entries, slots): storage index of the slot's block, or kNoBlock. With chunks empty, where each block is in the
  // place of its entry.
  std::vector<int32_t> entry_block;
  std::vector<WorkTile> tiles;  // in the order in which they are taken
  std::vector<SplitTile> split_tiles;
  int32_t parts = 0;  // parts of all split tiles together
  std::vector<RowChunk> chunks;
  std::vector<int32_t> row_ptr;  // (block_rows + 1) where there are chunks: the entries of each block row

  int64_t entries() const { return static_cast<int64_t>(entry_k.size()); }
};

// Deterministic: the same index and shape give the same plan, bit for bit. Throws Error where C has too many tiles.
// For an index in device memory cuda/device_plan.h makes the same plan, except that it ignores most_parts, so that its
// tiles are whole, and any_rows where there are more than 2^16 block columns, and that it leaves gaps between entries.
Plan make_plan(const BsrIndex& index, const PlanShape& shape);
// The same, reusing the orders of the index's block rows that were computed before.
Plan make_plan(RowOrders& orders, const PlanShape& shape);

// Rules that both planners share.

// Panels of tile_n columns, the last of which may be narrower.
inline int32_t count_panels(const PlanShape& shape) {
  return static_cast<int32_t>((shape.n + shape.tile_n - 1) / shape.tile_n);
}
// The number of tiles, row groups times panels. Throws Error where there are more than int32 holds.
int64_t count_tiles(int64_t rows, const PlanShape& shape);
// Throws Error where the row groups have more entries than a tile can name.
void check_entries(int64_t entries);
// Throws Error where an entry cannot name its first row of B.
void check_depth(const BsrShape& index);

}  // namespace sparsek
