// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "abi/error.h"
#include "plan/chunk_plan.h"
#include "plan/row_groups.h"
#include "plan/schedule.h"
#include "plan/schedule_tiles.h"
#include "plan/split.h"

namespace sparsek {
namespace {

constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();

EntrySums sum_entries(const std::vector<EntryRange>& groups, const std::vector<int32_t>& entry_k, int32_t block_k) {
  EntrySums sums;
  const EntryRange* before = nullptr;
  for (const EntryRange& group : groups) {
    const EntryRange* const last = std::exchange(before, &group);
    if (group.count() == 0) continue;
    const bool is_first = last == nullptr || last->count() == 0;
    if (!is_first && last->begin == group.begin) continue;  // they share their entries
    ++sums.groups;
    sums.entries += group.count();
    sums.spanned += entry_k[group.end - 1] + block_k - entry_k[group.begin];
    if (!is_first) sums.moved += std::abs(entry_k[group.begin] - entry_k[last->begin]);
  }
  return sums;
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

void check_depth(const BsrShape& index) {
  if (index.nnzb > 0 && (index.block_cols - int64_t{1}) * index.block_k > kLimit) {
    fail(SPARSEK_BAD_SIZE, "K = %lld: the last block column begins beyond the 2^31 - 1 rows of B that a plan can name",
         static_cast<long long>(index.cols));
  }
}

Plan make_plan(const BsrIndex& index, const PlanShape& shape) {
  RowOrders orders(index);
  return make_plan(orders, shape);
}

Plan make_plan(RowOrders& orders, const PlanShape& shape) {
  const BsrIndex& index = orders.index();
  if (shape.chunks > 0) return make_chunk_plan(index, shape);
  Plan plan;
  plan.shape = shape;
  plan.slot_rows = std::gcd(shape.tile_m, index.block_m);
  plan.slots = shape.tile_m / plan.slot_rows;

  count_tiles(index.rows, shape);
  check_depth(index);
  const std::vector<EntryRange> groups = make_row_groups(orders, plan);
  if (plan.shape.panels_in_flight == 0) {
    const bool band = may_prefer_band(count_panels(shape), shape.tile_n) &&
                      is_band(sum_entries(groups, plan.entry_k, index.block_k), index.block_k);
    plan.shape.panels_in_flight =
        choose_panels(share_columns(plan.slots, plan.entries(), index.nnzb), band, shape.tile_n * shape.element_bytes);
  }
  schedule_tiles(groups, choose_parts(groups, plan.shape), plan);
  return plan;
}

}  // namespace sparsek
