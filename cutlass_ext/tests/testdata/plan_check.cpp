// SPDX-License-Identifier: Apache-2.0
// Makes plans for random patterns, blocks and tiles, and checks each against the BSR arrays: every tile of C is
// in the list once, and the entries of its row group are the union of the blocks of just the block rows that it lies
// in. And each must be, bit for bit, the plan of plan_reference.h. Prints the first difference and exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "plan/panel_ends.h"
#include "plan/plan.h"
#include "plan_reference.h"
#include "random_index.h"

namespace {

using sparsek::BsrIndex;
using sparsek::Plan;
using sparsek::PlanShape;
using sparsek::WorkTile;

#define REQUIRE(condition)                                                                                         \
  do {                                                                                                             \
    if (!(condition)) {                                                                                            \
      std::printf("line %d: %s: rows %lld, block %dx%d, tile %d x %d, n %lld, %d workers\n", __LINE__, #condition, \
                  static_cast<long long>(index.rows), index.block_m, index.block_k, shape.tile_m, shape.tile_n,    \
                  static_cast<long long>(shape.n), shape.workers);                                                 \
      std::exit(1);                                                                                                \
    }                                                                                                              \
  } while (0)

void check_entries(const BsrIndex& index, const PlanShape& shape, const Plan& plan, const WorkTile& tile) {
  std::map<int32_t, std::map<int32_t, int32_t>> want;  // column -> slot -> storage index
  for (int32_t slot = 0; slot < plan.slots; ++slot) {
    const int64_t first_row = plan.slot_row[static_cast<size_t>(tile.m_tile) * plan.slots + slot];
    if (first_row >= index.rows) continue;
    const int64_t row = first_row / index.block_m;
    for (int32_t i = index.row_ptr[row]; i < index.row_ptr[row + 1]; ++i) want[index.col_idx[i]][slot] = i;
  }
  REQUIRE(tile.entry_count == static_cast<int32_t>(want.size()));
  int32_t entry = tile.entry_begin;
  for (const auto& [col, blocks] : want) {
    REQUIRE(plan.entry_k[entry] == col * index.block_k);
    for (int32_t slot = 0; slot < plan.slots; ++slot) {
      const auto found = blocks.find(slot);
      const int32_t block = found == blocks.end() ? sparsek::kNoBlock : found->second;
      REQUIRE(plan.entry_block[static_cast<size_t>(entry) * plan.slots + slot] == block);
    }
    ++entry;
  }
}

// Every row of C lies in one slot, each slot in one block row; and neighbours stay together where they have to.
void check_slots(const BsrIndex& index, const PlanShape& shape, const Plan& plan) {
  REQUIRE(plan.slots * plan.slot_rows == shape.tile_m);
  REQUIRE(index.block_m % plan.slot_rows == 0);
  std::vector<int> covered(index.rows);
  for (size_t i = 0; i < plan.slot_row.size(); ++i) {
    const int64_t first = plan.slot_row[i];
    REQUIRE(first >= 0 && first % plan.slot_rows == 0);
    REQUIRE(shape.any_rows || first == static_cast<int64_t>(i) * plan.slot_rows);
    for (int64_t row = first; row < std::min(first + plan.slot_rows, index.rows); ++row) ++covered[row];
  }
  REQUIRE(std::count(covered.begin(), covered.end(), 1) == index.rows);
}

void check_plan(const BsrIndex& index, const PlanShape& shape) {
  const Plan plan = sparsek::make_plan(index, shape);
  check_slots(index, shape, plan);
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const WorkTile& tile : plan.tiles) {
    REQUIRE(tile.m_tile >= 0 && static_cast<int64_t>(tile.m_tile) * shape.tile_m < index.rows);
    REQUIRE(tile.n_tile >= 0 && static_cast<int64_t>(tile.n_tile) * shape.tile_n < shape.n);
    REQUIRE(seen.emplace(tile.m_tile, tile.n_tile).second);
    check_entries(index, shape, plan, tile);
  }
  const int64_t row_tiles = (index.rows + shape.tile_m - 1) / shape.tile_m;
  const int64_t column_tiles = (shape.n + shape.tile_n - 1) / shape.tile_n;
  REQUIRE(static_cast<int64_t>(seen.size()) == row_tiles * column_tiles);

  const std::vector<int32_t> ends = sparsek::panel_ends(plan);
  REQUIRE(static_cast<int64_t>(ends.size()) == column_tiles);
  for (size_t p = 0; p < ends.size(); ++p) {
    const auto needed = [&](const WorkTile& tile) { return sparsek::panel_of(tile) <= static_cast<int32_t>(p); };
    REQUIRE(std::none_of(plan.tiles.begin() + ends[p], plan.tiles.end(), needed));
    REQUIRE(ends[p] == 0 ? plan.tiles.empty() : needed(plan.tiles[ends[p] - 1]));
  }

  const Plan reference = reference_plan(index, shape, plan);
  REQUIRE(plan.shape.panels_in_flight == reference.shape.panels_in_flight && plan.slots == reference.slots);
  REQUIRE(plan.entry_k == reference.entry_k && plan.entry_block == reference.entry_block);
  REQUIRE(plan.tiles.size() == reference.tiles.size());
  const auto same = [](const WorkTile& a, const WorkTile& b) {
    return a.m_tile == b.m_tile && a.n_tile == b.n_tile && a.entry_begin == b.entry_begin &&
           a.entry_count == b.entry_count;
  };
  REQUIRE(std::equal(plan.tiles.begin(), plan.tiles.end(), reference.tiles.begin(), same));
}

}  // namespace

// A band whose block rows were permuted, and families of like rows, are put together again.
void check_order() {
  for (const bool band : {true, false}) {
    BsrIndex index;
    index.block_m = index.block_k = 64;
    index.block_rows = index.block_cols = 128;
    index.rows = index.cols = 128 * 64;
    std::vector<int32_t> place(index.block_rows);
    std::iota(place.begin(), place.end(), 0);
    std::shuffle(place.begin(), place.end(), random_bits);
    index.row_ptr.push_back(0);
    for (const int32_t row : place) {
      for (int32_t col = 0; col < index.block_cols; ++col) {
        if (band ? std::abs(row - col) <= 8 : (row / 4 * 37 + col * 11) % 128 < 16) index.col_idx.push_back(col);
      }
      index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
    }
    index.nnzb = static_cast<int64_t>(index.col_idx.size());
    PlanShape shape;
    shape.tile_m = 128;
    shape.tile_n = 256;
    shape.n = 256;
    shape.any_rows = true;
    const Plan plan = sparsek::make_plan(index, shape);
    REQUIRE(plan.entries() * 100 <= index.nnzb * (band ? 57 : 51));  // half of nnzb would be perfect pairs
  }
}

// A few long block rows that have all columns in common stay apart: each would else wait for the other.
void check_long_rows_stay_apart() {
  BsrIndex index;
  index.block_m = index.block_k = 64;
  index.block_rows = index.block_cols = 64;
  index.rows = index.cols = 64 * 64;
  index.row_ptr.push_back(0);
  for (int32_t row = 0; row < index.block_rows; ++row) {
    const int32_t begin = row % 8 == 0 ? 0 : row, end = row % 8 == 0 ? 60 : row + 1;
    for (int32_t col = begin; col < end; ++col) index.col_idx.push_back(col);
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  PlanShape shape;
  shape.tile_m = 128;
  shape.tile_n = 256;
  shape.n = 256;
  shape.any_rows = true;
  const Plan plan = sparsek::make_plan(index, shape);
  for (size_t i = 0; i < plan.slot_row.size(); i += 2) {
    REQUIRE(plan.slot_row[i] / 64 % 8 != 0 || plan.slot_row[i + 1] / 64 % 8 != 0);
  }
}

// Eight panels of a band, whose row groups read nearly the same rows of B one after the other; fewer where the same
// rows come in another order, where others lie between them, where they are many, and of a few columns.
void check_panels() {
  enum Kind { kWindow, kCausal, kShuffledWindow, kEachOther, kFull };
  for (const Kind kind : {kWindow, kCausal, kShuffledWindow, kEachOther, kFull}) {
    BsrIndex index;
    index.block_m = index.block_k = 64;
    index.rows = index.cols = 8192;
    index.block_rows = index.block_cols = 128;
    index.row_ptr.push_back(0);
    for (int32_t row = 0; row < 128; ++row) {
      const int32_t at = kind == kShuffledWindow ? row / 2 * 77 % 64 * 2 + row % 2 : row;
      for (int32_t col = 0; col < 128; ++col) {
        if (kind == kCausal ? col <= at
                            : kind == kFull || (std::abs(col - at) <= 8 && (kind != kEachOther || col % 2 == 0)))
          index.col_idx.push_back(col);
      }
      index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
    }
    index.nnzb = static_cast<int64_t>(index.col_idx.size());
    PlanShape shape;
    shape.tile_m = 128;
    shape.tile_n = 256;
    shape.workers = 132;
    shape.panels_in_flight = 0;
    const bool band = kind == kWindow || kind == kCausal;
    for (const int64_t n : {1024, 8192}) {
      shape.n = n;
      REQUIRE(sparsek::make_plan(index, shape).shape.panels_in_flight == (band && n > 1024 ? 8 : 4));
    }
    shape.tile_n = 512;
    REQUIRE(sparsek::make_plan(index, shape).shape.panels_in_flight == (band ? 4 : 2));
    shape.element_bytes = 4;  // as many bytes of B's rows
    REQUIRE(sparsek::make_plan(index, shape).shape.panels_in_flight == (band ? 2 : 1));
  }
}

int main() {
  check_order();
  check_panels();
  check_long_rows_stay_apart();
  for (int round = 0; round < 2000; ++round) {
    const BsrIndex index = random_index();
    PlanShape shape;
    shape.tile_m = draw(0, 2) == 0 ? index.block_m : 128;
    shape.tile_n = 256;
    shape.n = draw(0, 1500);
    shape.workers = draw(1, 20);
    shape.panels_in_flight = draw(0, 3);
    shape.tile_cost = draw(0, 50) / 10.0;
    shape.any_rows = draw(0, 1) == 1;
    check_plan(index, shape);
  }
}
