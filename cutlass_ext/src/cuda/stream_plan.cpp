// SPDX-License-Identifier: Apache-2.0
#include "cuda/stream_plan.h"

#include <algorithm>
#include <numeric>

#include "cuda/stream_schedule.h"
#include "cuda/stream_union.h"

namespace sparsek::cuda {

StreamPlanner::StreamPlanner(const BsrShape& pattern, const PlanShape& shape) : pattern_(pattern), shape_(shape) {
  grid_.rows = pattern.rows;
  grid_.block_m = pattern.block_m;
  grid_.slot_rows = std::gcd(shape.tile_m, pattern.block_m);
  grid_.slots = sizes_.slots = shape.tile_m / grid_.slot_rows;
  places_ = EntryPlaces(grid_, pattern.block_cols, pattern.nnzb);
  sizes_.groups = grid_.groups();
  sizes_.tiles = count_tiles(pattern.rows, shape);
  sizes_.entries = places_.capacity();
  sizes_.ranges = sizes_.groups;
  sizes_.scratch = stream_schedule_scratch(static_cast<int32_t>(sizes_.groups));
  check_depth(pattern);
  check_entries(sizes_.entries);
}

void StreamPlanner::enqueue(const CheckedIndex& index, const PlanArrays::Views& to, cudaStream_t stream) const {
  unite_columns({grid_, places_, pattern_.block_k, index}, to.ranges, to.entry_k, to.entry_block, stream);
  StreamSchedule schedule = {};
  schedule.grid = grid_;
  schedule.groups = static_cast<int32_t>(sizes_.groups);
  schedule.panels = static_cast<int32_t>((shape_.n + shape_.tile_n - 1) / shape_.tile_n);
  schedule.panels_in_flight = shape_.panels_in_flight;
  schedule.workers = shape_.workers;
  schedule.longest = static_cast<int32_t>(std::min<int64_t>(sizes_.entries, pattern_.block_cols));
  schedule.ranges = to.ranges;
  schedule.blocks = index.row_ptr + pattern_.block_rows;
  schedule_in_stream(schedule, to.scratch, {to.slot_row, to.tiles, to.entries, to.recomputed}, stream);
}

}  // namespace sparsek::cuda
