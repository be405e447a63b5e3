// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <limits>
#include <numeric>

#include "abi/error.h"
#include "plan/row_groups.h"
#include "plan/schedule.h"
#include "plan/schedule_tiles.h"
#include "plan/split.h"

namespace sparsek {
namespace {

constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();

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
  Plan plan;
  plan.shape = shape;
  plan.slot_rows = std::gcd(shape.tile_m, index.block_m);
  plan.slots = shape.tile_m / plan.slot_rows;

  count_tiles(index.rows, shape);
  check_depth(index);
  const std::vector<EntryRange> groups = make_row_groups(orders, plan);
  if (plan.shape.panels_in_flight == 0) {
    plan.shape.panels_in_flight = choose_panels(plan.slots, plan.entries(), index.nnzb, shape.tile_n);
  }
  schedule_tiles(groups, choose_parts(groups, plan.shape), plan);
  return plan;
}

}  // namespace sparsek
