// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "abi/error.h"
#include "plan/least_loaded.h"
#include "plan/row_groups.h"

namespace sparsek {
namespace {

constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();

// Deals the tiles out to the workers, `panels_in_flight` panels of columns at a time so that B's panels stay in L2,
// and within these longest first, each to the worker with the least work so far (Graham's LPT rule: the spread at
// the end is at most one tile).
void deal_tiles(const std::vector<EntryRange>& groups, Plan& plan) {
  const PlanShape& shape = plan.shape;
  const int32_t panels = static_cast<int32_t>((shape.n + shape.tile_n - 1) / shape.tile_n);

  std::vector<int32_t> longest_first(groups.size());
  std::iota(longest_first.begin(), longest_first.end(), 0);
  const auto length = [&](int32_t g) { return groups[g].count(); };
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](int32_t a, int32_t b) { return length(a) > length(b); });

  // Who gets each tile, in the order of dealing; then each worker's tiles one after the other.
  const size_t tile_count = groups.size() * panels;
  std::vector<int32_t> worker_of;
  worker_of.reserve(tile_count);
  plan.worker_begin.assign(shape.workers + 1, 0);
  LeastLoaded least(shape.workers);
  const auto each_tile = [&](const auto& visit) {
    for (int32_t first = 0; first < panels; first += shape.panels_in_flight) {
      const int32_t last = std::min(first + shape.panels_in_flight, panels);
      for (const int32_t g : longest_first) {
        for (int32_t panel = first; panel < last; ++panel) visit(g, panel);
      }
    }
  };
  each_tile([&](int32_t g, int32_t) {
    const int32_t worker = least.worker();
    worker_of.push_back(worker);
    ++plan.worker_begin[worker + 1];
    least.set_load(least.load() + shape.tile_cost + length(g));
  });
  std::partial_sum(plan.worker_begin.begin(), plan.worker_begin.end(), plan.worker_begin.begin());
  std::vector<int32_t> next(plan.worker_begin.begin(), plan.worker_begin.end() - 1);
  plan.tiles.resize(tile_count);
  size_t dealt = 0;
  each_tile([&](int32_t g, int32_t panel) {
    plan.tiles[next[worker_of[dealt++]]++] = {g, panel, groups[g].begin, length(g)};
  });
}

}  // namespace

int64_t count_tiles(int64_t rows, const PlanShape& shape) {
  const int64_t groups = (rows + shape.tile_m - 1) / shape.tile_m;
  const int64_t panels = (shape.n + shape.tile_n - 1) / shape.tile_n;
  if (groups > kLimit || panels > kLimit || (panels > 0 && groups > kLimit / panels)) {
    fail(SPARSEK_BAD_SIZE, "C of %lld x %lld has more than 2^31 tiles of %d x %d", static_cast<long long>(rows),
         static_cast<long long>(shape.n), shape.tile_m, shape.tile_n);
  }
  return groups * panels;
}

void check_entries(int64_t entries) {
  if (entries > kLimit) {
    fail(SPARSEK_BAD_SIZE, "the row groups have %lld block columns in all, beyond int32: use larger blocks",
         static_cast<long long>(entries));
  }
}

// Where the rows of a group have few columns in common, B's panels are read all over and two of them are what stays in
// the cache; where they share most columns (or a block row fills the tile), loads of A count as much and four panels
// read each block of A from the cache (docs/notes.md, "Panels").
int32_t choose_panels(int32_t slots, int64_t entries, int64_t nnzb) {
  const bool share = nnzb * 5 >= entries * slots * 4;
  return slots > 1 && !share ? 2 : 4;
}

Plan make_plan(const BsrIndex& index, const PlanShape& shape) {
  RowOrders orders(index);
  return make_plan(orders, shape);
}

Plan make_plan(RowOrders& orders, const PlanShape& shape) {
  const BsrIndex& index = orders.index();
  Plan plan;
  plan.shape = shape;
  plan.slot_rows = std::gcd(shape.tile_m, index.block_m);
  plan.slots = shape.tile_m / plan.slot_rows;

  count_tiles(index.rows, shape);
  const std::vector<EntryRange> groups = make_row_groups(orders, plan);
  if (plan.shape.panels_in_flight == 0) {
    plan.shape.panels_in_flight = choose_panels(plan.slots, plan.entries(), index.nnzb);
  }
  deal_tiles(groups, plan);
  return plan;
}

}  // namespace sparsek
