// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_plan.h"

#include <algorithm>
#include <numeric>

#include "cuda/group_union.h"
#include "cuda/layout.h"
#include "cuda/row_matching.h"
#include "cuda/schedule_tiles.h"
#include "plan/schedule.h"

namespace sparsek::cuda {

PlanArrays make_device_plan(const DeviceIndex& index, PlanShape shape, PlanMemory& memory, const StreamUses& uses) {
  PlanSizes sizes;
  RowGrid grid;
  grid.rows = index.rows;
  grid.block_m = index.block_m;
  grid.slot_rows = std::gcd(shape.tile_m, index.block_m);
  grid.slots = sizes.slots = shape.tile_m / grid.slot_rows;
  sizes.groups = grid.groups();
  sizes.tiles = count_tiles(index.rows, shape);
  check_depth(index);
  const auto groups = static_cast<int32_t>(sizes.groups);
  const auto panels = static_cast<int32_t>((shape.n + shape.tile_n - 1) / shape.tile_n);

  const bool matched = shape.any_rows && grid.slots > 1 && grid.slot_rows == index.block_m &&
                       may_match_rows(index.block_rows, index.block_cols, grid.slots);

  // The parts of the work follow each other, and so use the same memory to work in.
  Layout layout;
  const size_t counts_at = layout.place<int64_t>(sizes.groups + 1), begin_at = layout.place<int64_t>(sizes.groups + 1);
  const size_t order_at = layout.place<int32_t>(matched ? sizes.groups * grid.slots : 0);
  const size_t match_bytes = matched ? match_scratch_bytes(index.block_rows, index.block_cols, grid.slots) : 0;
  const size_t scratch_at =
      layout.place<std::byte>(std::max({scan_bytes(groups), schedule_scratch(groups), match_bytes}));
  const PlanMemory::Block work = memory.allocate(layout.bytes(), nullptr);
  auto* const counts = reinterpret_cast<int64_t*>(work.data() + counts_at);
  auto* const begin = reinterpret_cast<int64_t*>(work.data() + begin_at);
  void* const scratch = work.data() + scratch_at;

  const cudaStream_t stream = memory.stream();
  if (matched) {
    auto* const order = reinterpret_cast<int32_t*>(work.data() + order_at);
    match_rows({index.block_rows, index.block_cols, index.arrays().row_ptr, index.arrays().col_idx}, grid.slots, order,
               scratch, stream);
    grid.order = order;
  }
  const GroupedPattern pattern = {grid, index.block_k, index.arrays().row_ptr, index.arrays().col_idx};
  count_entries(pattern, counts, begin, scratch, stream);
  sizes.entries = memory.read(begin + groups);
  check_entries(sizes.entries);
  if (shape.panels_in_flight == 0) {
    shape.panels_in_flight = choose_panels(sizes.slots, sizes.entries, index.nnzb);
  }

  PlanArrays arrays(memory, sizes, uses, stream);
  check(cudaMemsetAsync(arrays.recomputed(), 0, sizeof(*arrays.recomputed()), stream), "cudaMemsetAsync");
  fill_entries(pattern, begin, sizes.entries, arrays.entry_k(), arrays.entry_block(), stream);
  Schedule schedule = {};
  schedule.grid = grid;
  schedule.groups = groups;
  schedule.panels = panels;
  schedule.panels_in_flight = shape.panels_in_flight;
  schedule.workers = shape.workers;
  schedule.longest = static_cast<int32_t>(std::min<int64_t>(sizes.entries, index.block_cols));
  schedule.counts = counts;
  schedule.begin = begin;
  schedule_tiles(schedule, scratch, arrays.slot_row(), arrays.tiles(), stream);
  check(cudaStreamSynchronize(stream), "making of the plan");
  return arrays;
}

}  // namespace sparsek::cuda
