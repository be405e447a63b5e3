// SPDX-License-Identifier: Apache-2.0
// What the planner in device memory works out a thread at a time, run here one thread after the other: the row groups
// of RowGrid and the order of plan/schedule.h must give the plan of make_plan, bit for bit.
// Prints the first difference and exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "plan/entry_places.h"
#include "plan/plan.h"
#include "plan/row_grid.h"
#include "plan/schedule.h"

namespace {

using sparsek::BsrIndex;
using sparsek::Plan;
using sparsek::PlanShape;
using sparsek::RowGrid;
using sparsek::TileOrder;
using sparsek::WorkTile;

std::mt19937 random_bits(7);
int32_t draw(int32_t low, int32_t high) { return std::uniform_int_distribution<int32_t>(low, high)(random_bits); }

#define REQUIRE(condition)                                                                                      \
  do {                                                                                                          \
    if (!(condition)) {                                                                                         \
      std::printf("line %d: %s: rows %lld, block %d, tile %d x %d, n %lld, %d workers\n", __LINE__, #condition, \
                  static_cast<long long>(index.rows), index.block_m, shape.tile_m, shape.tile_n,                \
                  static_cast<long long>(shape.n), shape.workers);                                              \
      std::exit(1);                                                                                             \
    }                                                                                                           \
  } while (0)

// Rows as long as each other, of any length, a few long ones among many short or empty ones.
BsrIndex random_index() {
  constexpr int32_t kHeights[] = {1, 8, 16, 48, 64, 96, 112, 128, 144, 256, 512};
  BsrIndex index;
  index.block_m = kHeights[draw(0, std::size(kHeights) - 1)];
  index.block_k = 64;
  index.rows = draw(0, 60 * index.block_m);
  index.block_rows = static_cast<int32_t>((index.rows + index.block_m - 1) / index.block_m);
  index.block_cols = draw(1, 120);
  index.cols = int64_t{64} * index.block_cols;
  index.row_ptr.push_back(0);
  const int kind = draw(0, 2);
  const int32_t same = draw(0, index.block_cols);
  for (int32_t row = 0; row < index.block_rows; ++row) {
    const int32_t few = draw(0, 9) == 0 ? index.block_cols : draw(0, 1);
    const int32_t count = kind == 0 ? same : kind == 1 ? draw(0, index.block_cols) : few;
    std::vector<int32_t> cols(index.block_cols);
    std::iota(cols.begin(), cols.end(), 0);
    std::shuffle(cols.begin(), cols.end(), random_bits);
    std::sort(cols.begin(), cols.begin() + count);
    index.col_idx.insert(index.col_idx.end(), cols.begin(), cols.begin() + count);
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  index.nnzb = static_cast<int64_t>(index.col_idx.size());
  return index;
}

struct Group {
  int32_t begin, count;
};

// The entries of each row group: of every leader the size of the union, of the others their leader's.
std::vector<Group> find_groups(const BsrIndex& index, const RowGrid& grid) {
  std::vector<Group> groups;
  int32_t begin = 0;
  for (int64_t g = 0; g < grid.groups(); ++g) {
    if (const int64_t leader = grid.leader(g); leader != g) {
      groups.push_back(groups[leader]);
      continue;
    }
    std::vector<char> present(index.block_cols);
    for (int32_t s = 0; s < grid.slots; ++s) {
      const int64_t row = grid.block_row(g, s);
      if (row < 0) continue;
      for (int32_t i = index.row_ptr[row]; i < index.row_ptr[row + 1]; ++i) present[index.col_idx[i]] = 1;
    }
    const auto count = static_cast<int32_t>(std::count(present.begin(), present.end(), 1));
    groups.push_back({begin, count});
    begin += count;
  }
  return groups;
}

void check_plan(const BsrIndex& index, const PlanShape& shape) {
  const Plan plan = sparsek::make_plan(index, shape);
  RowGrid grid;
  grid.rows = index.rows;
  grid.block_m = index.block_m;
  grid.slots = plan.slots;
  grid.slot_rows = plan.slot_rows;
  REQUIRE(static_cast<int64_t>(plan.slot_row.size()) == grid.groups() * grid.slots);
  for (size_t i = 0; i < plan.slot_row.size(); ++i) {
    REQUIRE(plan.slot_row[i] == grid.slot_row(i / grid.slots, static_cast<int32_t>(i % grid.slots)));
  }

  const auto panels = static_cast<int32_t>((shape.n + shape.tile_n - 1) / shape.tile_n);
  const std::vector<Group> groups = find_groups(index, grid);
  int64_t entries = 0;
  for (const Group& group : groups) entries += group.count;
  const auto long_groups = static_cast<int32_t>(std::count_if(groups.begin(), groups.end(), [&](const Group& group) {
    return sparsek::is_long(group.count, grid.groups(), entries, shape.workers, plan.shape.panels_in_flight);
  }));
  const TileOrder order(static_cast<int32_t>(grid.groups()), panels, plan.shape.panels_in_flight, long_groups);
  REQUIRE(order.tiles() == static_cast<int32_t>(plan.tiles.size()));
  std::vector<int32_t> sorted(groups.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](int32_t a, int32_t b) { return groups[a].count > groups[b].count; });
  for (int32_t i = 0; i < order.tiles(); ++i) {
    const TileOrder::Place place = order[i];
    REQUIRE(order.number(place) == i);
    const Group& group = groups[sorted[place.rank]];
    const WorkTile& tile = plan.tiles[i];
    REQUIRE(tile.m_tile == sorted[place.rank] && tile.n_tile == place.panel);
    REQUIRE(tile.entry_begin == group.begin && tile.entry_count == group.count);
  }
}

// The ranges that entries get before they are counted hold them, lie within the capacity, and do not overlap.
void check_places(const BsrIndex& index, const PlanShape& shape) {
  RowGrid grid;
  grid.rows = index.rows;
  grid.block_m = index.block_m;
  grid.slot_rows = std::gcd(shape.tile_m, index.block_m);
  grid.slots = shape.tile_m / grid.slot_rows;
  const int64_t bound = index.nnzb + draw(0, 1) * draw(0, 1000);
  const sparsek::EntryPlaces places(grid, index.block_cols, bound);
  REQUIRE(places.capacity() <= grid.groups() * index.block_cols && places.capacity() <= 3 * bound);
  const bool cuts = shape.tile_m % index.block_m != 0 && index.block_m % shape.tile_m != 0;
  REQUIRE(cuts || places.capacity() <= bound);
  const std::vector<Group> groups = find_groups(index, grid);
  std::vector<char> taken(places.capacity());
  for (int64_t g = 0; g < grid.groups(); ++g) {
    if (grid.leader(g) != g) continue;
    const int64_t begin = places.begin(g, index.row_ptr.data());
    REQUIRE(begin >= 0 && begin + groups[g].count <= places.capacity());
    for (int64_t i = begin; i < begin + groups[g].count; ++i) {
      REQUIRE(!taken[i]);
      taken[i] = 1;
    }
  }
}

}  // namespace

int main() {
  for (int i = 0; i < 1500; ++i) {
    const BsrIndex index = random_index();
    PlanShape shape;
    shape.tile_m = draw(0, 2) == 0 ? index.block_m : 128;
    shape.tile_n = 64;
    shape.n = draw(0, 1500);
    shape.workers = draw(0, 3) == 0 ? draw(1, 4) : draw(1, 300);
    shape.panels_in_flight = draw(0, 5);
    check_plan(index, shape);
    check_places(index, shape);
  }
}
