// SPDX-License-Identifier: Apache-2.0
// Makes plans whose tiles may be split, and checks each against the plan of the same pattern without: the parts of a
// tile have each of its entries once and in order, each part has a place of its own, and the worker that is done last
// is done so much earlier that the parts are worth their costs.
// Prints the first difference and exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "random_index.h"

namespace {

using sparsek::BsrIndex;
using sparsek::Plan;
using sparsek::PlanShape;
using sparsek::WorkTile;

#define REQUIRE(condition)                                                                                       \
  do {                                                                                                           \
    if (!(condition)) {                                                                                          \
      std::printf("line %d: %s: rows %lld, block %dx%d, tile %d x %d, n %lld, %d workers, at most %d parts\n",   \
                  __LINE__, #condition, static_cast<long long>(index.rows), index.block_m, index.block_k,        \
                  shape.tile_m, shape.tile_n, static_cast<long long>(shape.n), shape.workers, shape.most_parts); \
      std::exit(1);                                                                                              \
    }                                                                                                            \
  } while (0)

bool same(const WorkTile& a, const WorkTile& b) {
  return a.m_tile == b.m_tile && a.n_tile == b.n_tile && a.entry_begin == b.entry_begin &&
         a.entry_count == b.entry_count;
}

bool same_work(const Plan& a, const Plan& b) {
  return a.parts == b.parts && a.split_tiles.size() == b.split_tiles.size() &&
         std::equal(a.tiles.begin(), a.tiles.end(), b.tiles.begin(), b.tiles.end(), same);
}

// The entries of the worker that has the most, with the costs of its tiles, where each takes the next tile when it is
// done.
double most_work(const Plan& plan) {
  std::vector<double> work(plan.shape.workers);
  for (const WorkTile& tile : plan.tiles) {
    *std::min_element(work.begin(), work.end()) += plan.shape.tile_cost + tile.entry_count;
  }
  return *std::max_element(work.begin(), work.end());
}

// Whether any tile was split.
bool check_plan(const BsrIndex& index, const PlanShape& shape) {
  const Plan plan = sparsek::make_plan(index, shape);
  PlanShape whole_shape = shape;
  whole_shape.most_parts = 0;
  const Plan whole = sparsek::make_plan(index, whole_shape);
  REQUIRE(whole.parts == 0 && whole.split_tiles.empty());
  REQUIRE(same_work(plan, sparsek::make_plan(index, shape)));
  REQUIRE(plan.slot_row == whole.slot_row && plan.entry_k == whole.entry_k);
  REQUIRE(plan.entry_block == whole.entry_block);
  REQUIRE(plan.parts <= shape.most_parts);

  std::map<std::pair<int32_t, int32_t>, WorkTile> uncut;  // by row group and panel
  for (const WorkTile& tile : whole.tiles) uncut[{tile.m_tile, tile.n_tile}] = tile;
  std::vector<const WorkTile*> part_at(plan.parts);
  for (const WorkTile& tile : plan.tiles) {
    const int32_t part = sparsek::part_of(tile);
    REQUIRE(part < plan.parts);
    if (part >= 0) {
      REQUIRE(part_at[part] == nullptr);
      part_at[part] = &tile;
      continue;
    }
    const auto found = uncut.find({tile.m_tile, tile.n_tile});
    REQUIRE(found != uncut.end() && same(found->second, tile));
    uncut.erase(found);
  }
  for (const sparsek::SplitTile& split : plan.split_tiles) {
    const auto found = uncut.find({split.m_tile, split.n_tile});
    REQUIRE(found != uncut.end() && split.parts > 1);
    const WorkTile tile = found->second;
    uncut.erase(found);
    int32_t entry = tile.entry_begin;
    for (int32_t i = 0; i < split.parts; ++i) {
      REQUIRE(split.first_part + i < plan.parts);
      const WorkTile* const part = part_at[split.first_part + i];
      REQUIRE(part != nullptr && part->m_tile == tile.m_tile && sparsek::panel_of(*part) == tile.n_tile);
      REQUIRE(part->entry_begin == entry && part->entry_count > 0);
      REQUIRE(std::abs(part->entry_count - tile.entry_count / split.parts) <= 1);
      entry += part->entry_count;
      part_at[split.first_part + i] = nullptr;
    }
    REQUIRE(entry == tile.entry_begin + tile.entry_count);
  }
  REQUIRE(uncut.empty());
  REQUIRE(std::count(part_at.begin(), part_at.end(), nullptr) == plan.parts);

  if (plan.parts == 0) {
    REQUIRE(same_work(plan, whole));
  } else {
    REQUIRE(most_work(plan) + shape.join_cost + shape.part_cost * plan.parts < 0.9 * most_work(whole));
  }
  return plan.parts > 0;
}

// `lengths` are the blocks of each block row, of 128 columns' height.
BsrIndex rows_of(const std::vector<int32_t>& lengths) {
  BsrIndex index;
  index.block_m = 128;
  index.block_k = 64;
  index.block_rows = static_cast<int32_t>(lengths.size());
  index.block_cols = *std::max_element(lengths.begin(), lengths.end());
  index.rows = int64_t{128} * index.block_rows;
  index.cols = int64_t{64} * index.block_cols;
  index.row_ptr.push_back(0);
  for (const int32_t length : lengths) {
    for (int32_t col = 0; col < length; ++col) index.col_idx.push_back(col);
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  index.nnzb = static_cast<int64_t>(index.col_idx.size());
  return index;
}

// The costs of a large GPU's kernel.
PlanShape large_shape(int64_t n) {
  PlanShape shape;
  shape.tile_m = 128;
  shape.tile_n = 256;
  shape.workers = 132;
  shape.n = n;
  shape.panels_in_flight = 2;
  shape.tile_cost = 2.4;
  shape.most_parts = 256;
  shape.join_cost = 4;
  shape.part_cost = 0.05;
  return shape;
}

void check_cases() {
  struct Case {
    const char* what;
    std::vector<int32_t> lengths;
    int64_t n;
    double at_most;  // work of the worker that has the most; 0: nothing is split
  };
  std::vector<int32_t> zipf(64);
  for (int32_t row = 0; row < 64; ++row) zipf[row] = std::max(128 / (row + 1), 1);
  std::vector<int32_t> one_long(200, 4);
  one_long[7] = 160;
  std::vector<int32_t> nearly_equal(64);
  for (int32_t row = 0; row < 64; ++row) nearly_equal[row] = 40 + row % 7;
  const Case cases[] = {
      {"few long tiles", std::vector<int32_t>(16, 64), 96, 12},
      {"one long row", one_long, 256, 30},
      {"unequal rows", zipf, 512, 30},
      {"a single tile", {300}, 8, 20},
      {"few short tiles", std::vector<int32_t>(16, 6), 96, 0},
      {"equal rows that keep all busy", std::vector<int32_t>(132, 40), 512, 0},
      {"more tiles than matter", nearly_equal, 16384, 0},
      {"no column", std::vector<int32_t>(16, 64), 0, 0},
      {"no block", std::vector<int32_t>(16, 0), 96, 0},
  };
  for (const Case& c : cases) {
    const BsrIndex index = rows_of(c.lengths);
    const PlanShape shape = large_shape(c.n);
    const bool is_split = check_plan(index, shape);
    const double most = most_work(sparsek::make_plan(index, shape));
    if (is_split != (c.at_most > 0) || (is_split && most > c.at_most)) {
      std::printf("%s: %s, the most work is %g\n", c.what, is_split ? "split" : "whole", most);
      std::exit(1);
    }
  }
}

// What a tile says of itself, at the ends of the ranges.
void check_words() {
  for (const int32_t panel : {0, 1, (1 << sparsek::kPanelBits) - 1}) {
    for (const int32_t part : {0, 1, sparsek::kMostParts - 1}) {
      const WorkTile tile = {0, sparsek::part_tile(panel, part), 0, 1};
      if (sparsek::panel_of(tile) != panel || sparsek::part_of(tile) != part) {
        std::printf("part %d of panel %d reads as %d of %d\n", part, panel, sparsek::part_of(tile),
                    sparsek::panel_of(tile));
        std::exit(1);
      }
    }
  }
  const WorkTile whole = {0, INT32_MAX, 0, 1};
  if (sparsek::panel_of(whole) != INT32_MAX || sparsek::part_of(whole) != -1) std::exit(1);
}

}  // namespace

int main() {
  check_words();
  check_cases();
  int split = 0;
  constexpr int kRounds = 1500;
  for (int round = 0; round < kRounds; ++round) {
    const BsrIndex index = random_index();
    PlanShape shape;
    shape.tile_m = draw(0, 2) == 0 ? index.block_m : 128;
    shape.tile_n = 256;
    shape.n = draw(0, 1500);
    shape.workers = draw(1, 60);
    shape.panels_in_flight = draw(0, 3);
    shape.tile_cost = draw(0, 50) / 10.0;
    shape.any_rows = draw(0, 1) == 1;
    shape.most_parts = draw(0, 300);
    shape.join_cost = draw(0, 40) / 10.0;
    shape.part_cost = draw(0, 10) / 100.0;
    split += check_plan(index, shape);
  }
  if (split < kRounds / 10) {
    std::printf("only %d of %d plans were split\n", split, kRounds);
    return 1;
  }
}
