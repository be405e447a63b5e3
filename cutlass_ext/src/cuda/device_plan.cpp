// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/cuda_error.h"
#include "cuda/cut_rows.h"
#include "cuda/group_union.h"
#include "cuda/layout.h"
#include "cuda/row_matching.h"
#include "cuda/schedule_tiles.h"

namespace sparsek::cuda {
namespace {

RowGrid grid_of(const BsrShape& pattern, const PlanShape& shape) {
  RowGrid grid;
  grid.rows = pattern.rows;
  grid.block_m = pattern.block_m;
  grid.slot_rows = std::gcd(shape.tile_m, pattern.block_m);
  grid.slots = shape.tile_m / grid.slot_rows;
  return grid;
}

bool may_match(const BsrShape& pattern, const RowGrid& grid) {
  return grid.slots > 1 && grid.slot_rows == grid.block_m &&
         may_match_rows(pattern.block_rows, pattern.block_cols, grid.slots);
}

// Of a product by tensor cores, of a random pattern, on `workers` CTAs. A tile multiplies all of its rows for each
// column that one of them has.
double product_seconds(const BsrShape& pattern, const PlanShape& shape, int32_t slots) {
  constexpr double kRate = 6.4e12;  // of a CTA, H200: 850e12 for 132
  const double blocks = static_cast<double>(pattern.block_rows) * pattern.block_cols;
  const double density = std::min(1.0, static_cast<double>(pattern.nnzb) / blocks);
  const double multiplied = 1 - std::pow(1 - density, slots);
  const double all = 2.0 * static_cast<double>(pattern.rows) * static_cast<double>(pattern.cols) * shape.n;
  return all * multiplied / (kRate * std::max(shape.workers, 1));
}

}  // namespace

bool is_matching_worthwhile(const BsrShape& pattern, const PlanShape& shape) {
  constexpr double kTimes = 8;
  const RowGrid grid = grid_of(pattern, shape);
  return may_match(pattern, grid) && product_seconds(pattern, shape, grid.slots) >=
                                         kTimes * match_seconds(pattern.block_rows, pattern.block_cols, grid.slots);
}

DevicePlanner::DevicePlanner(const BsrShape& pattern, const PlanShape& shape, const ListSizes& lists)
    : pattern_(pattern),
      shape_(shape),
      grid_(grid_of(pattern, shape)),
      places_(grid_, pattern.block_cols, pattern.nnzb),
      matches_(shape.any_rows && may_match(pattern, grid_)) {
  check_depth(pattern);
  if (shape.chunks > 0) {
    sizes_.chunks = shape.chunks;
    sizes_.block_rows = pattern.block_rows;
    sizes_.entries = pattern.nnzb;
    sizes_.lists = lists;
    if (lists.columns > 0) sizes_.scratch = static_cast<size_t>(lists.bound_bytes());
    return;
  }
  sizes_.slots = grid_.slots;
  sizes_.groups = grid_.groups();
  sizes_.tiles = count_tiles(pattern.rows, shape);
  sizes_.entries = places_.capacity();
  sizes_.ranges = sizes_.groups;
  check_entries(sizes_.entries);
  Layout layout;
  // The rows are matched before tiles are scheduled: both use the same memory to work in.
  size_t work_bytes = schedule_scratch(static_cast<int32_t>(sizes_.groups));
  if (matches_) {
    order_at_ = layout.place<int32_t>(static_cast<size_t>(sizes_.groups) * static_cast<size_t>(sizes_.slots));
    taken_at_ = layout.place<int32_t>(1);
    work_bytes = std::max(work_bytes, match_scratch_bytes(pattern.block_rows, pattern.block_cols, sizes_.slots));
  }
  work_at_ = layout.place<std::byte>(work_bytes);
  sizes_.scratch = layout.bytes();
}

void DevicePlanner::enqueue(const CheckedIndex& index, const PlanArrays::Views& to, cudaStream_t stream) const {
  if (shape_.chunks > 0) {
    const ChunkRule rule = {pattern_.block_rows, shape_.chunks, shape_.longest_whole};
    cut_rows(index, rule, pattern_.block_k, to, stream);
    if (sizes_.lists.columns > 0) enqueue_lists(pattern_, sizes_.lists, to, to.scratch, stream);
    return;
  }
  RowGrid grid = grid_;
  auto* const taken = reinterpret_cast<int32_t*>(to.scratch + taken_at_);
  if (matches_) {
    auto* const order = reinterpret_cast<int32_t*>(to.scratch + order_at_);
    match_rows({pattern_.block_rows, pattern_.block_cols, index}, grid.slots, order, taken, to.scratch + work_at_,
               stream);
    grid.order = order;
  }
  Schedule schedule = {};
  schedule.grid = grid;
  schedule.groups = static_cast<int32_t>(sizes_.groups);
  schedule.panels = count_panels(shape_);
  schedule.tile_n = shape_.tile_n;
  schedule.element_bytes = shape_.element_bytes;
  schedule.block_k = pattern_.block_k;
  schedule.panels_in_flight = shape_.panels_in_flight;
  schedule.workers = shape_.workers;
  schedule.longest = static_cast<int32_t>(std::min<int64_t>(sizes_.entries, pattern_.block_cols));
  schedule.ranges = to.ranges;
  schedule.entry_k = to.entry_k;
  schedule.blocks = index.row_ptr + pattern_.block_rows;
  const GroupedPattern pattern = {grid, places_, pattern_.block_cols, pattern_.block_k, index, taken};
  const UnitedEntries entries = {to.ranges, to.entry_k, to.entry_block};
  const ScheduledTiles tiles = {to.slot_row, to.tiles, to.entries, to.recomputed};
  if (is_made_at_once(schedule)) return unite_and_schedule(pattern, entries, schedule, tiles, stream);
  unite_columns(pattern, entries, stream);
  schedule_tiles(schedule, to.scratch + work_at_, tiles, stream);
}

void enqueue_lists(const BsrShape& pattern, const ListSizes& sizes, const PlanArrays::Views& to, void* bounds,
                   cudaStream_t stream) {
  const ListedIndex index = {pattern.rows, pattern.cols, pattern.block_m, pattern.block_k,
                             to.row_ptr,   to.entry_k,   to.entry_block,  &to.chunks->entry_end};
  check(list_stages(index, sizes, {sizes, to.lists}, bounds, stream), "list_stages");
}

}  // namespace sparsek::cuda
