// SPDX-License-Identifier: Apache-2.0
// How warps make the lists of stages (cuda/stage_lists.h).
#pragma once

#include "cuda/stage_lists.h"

namespace sparsek::cuda {
namespace lists_stages {

constexpr uint32_t kAll = 0xffffffffu;

// The rows of a quarter, a lane each, in a stage.
struct Quarter {
  int first;          // entry of the lane's row
  int elements;       // of it
  int before;         // of the rows before it
  int all;            // of the quarter
  int in_stages;      // of the quarter's stages before
  uint32_t in_block;  // elements of a block before the lane's row of it

  __device__ Quarter(const ListedIndex& index, const ListSizes& sizes, const int32_t* bounds, int64_t row, int stage,
                     int lane) {
    const bool inside = row < index.rows;
    const uint32_t block_row = inside ? uint32_t(row) / uint32_t(index.block_m) : 0;
    in_block = (uint32_t(row) - block_row * uint32_t(index.block_m)) * uint32_t(index.block_k);
    const int32_t* const of_row = bounds + block_row * (sizes.stages + 1);
    const int begin = of_row[0], end = of_row[stage + 1];
    first = of_row[stage];
    elements = inside ? (end - first) * index.block_k : 0;
    in_stages = __reduce_add_sync(kAll, inside ? first - begin : 0) * index.block_k;
    before = elements;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(kAll, before, step);
      if (lane >= step) before += other;
    }
    all = __shfl_sync(kAll, before, 31);
    before -= elements;
  }
};

// The elements of the rows before, each of which lies in a list before.
__device__ inline int64_t elements_before(const ListedIndex& index, const ListSizes& sizes, int64_t row) {
  const int64_t inside = min(row, index.rows), block_row = min(inside / index.block_m, sizes.block_rows - 1);
  const int64_t entries = __ldg(index.row_ptr + block_row), own = __ldg(index.row_ptr + block_row + 1) - entries;
  return (entries * index.block_m + own * (inside - block_row * index.block_m)) * index.block_k;
}

// Writes a quarter's list, and the units behind it up to the next list.
__device__ inline void write_list(const ListedIndex& index, const ListSizes& sizes, const Quarter& quarter,
                                  uint32_t reciprocal, int stage, int lane, int units, uint16_t* places,
                                  uint32_t* sources) {
  const uint32_t area = uint32_t(index.block_m) * uint32_t(index.block_k);
  const bool in_place = __ldg(index.entry_end) >= 0;
#pragma unroll 1
  for (int unit = 0; unit < units; ++unit) {
    uint32_t place[2], source[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = min(unit * kUnit + i * 32 + lane, max(quarter.all, 1) - 1);
      int row = 0;  // the last one whose elements begin at `at` or before; rows without elements come before others
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(kAll, quarter.before, row + step) <= at) row += step;
      }
      const uint32_t in_row = at - __shfl_sync(kAll, quarter.before, row);
      const uint32_t entry = block_of(in_row, reciprocal), column = in_row - entry * uint32_t(index.block_k);
      const uint32_t e = __shfl_sync(kAll, quarter.first, row) + entry;
      const uint32_t element = __shfl_sync(kAll, quarter.in_block, row) + column;
      place[i] = 0;
      source[i] = kNoSource;
      if (quarter.all == 0) continue;
      const uint32_t of_a = uint32_t(__ldg(index.entry_k + e)) + column;
      place[i] = place_of(row, of_a - uint32_t(stage) * sizes.columns);
      // Columns behind the last one of A, of a block that reaches beyond it, add nothing.
      if (of_a < index.cols) source[i] = (in_place ? e : uint32_t(__ldg(index.entry_block + e))) * area + element;
    }
    reinterpret_cast<uint32_t*>(places)[unit * 32 + lane] = place[0] | place[1] << 16;
    reinterpret_cast<uint2*>(sources)[unit * 32 + lane] = {source[0], source[1]};
  }
}

// Writes the list of a stage of quarter `at` of all, and of its step where it lies, in the place of its stage, with 0
// units where it has no elements.
__device__ inline void make_list(const ListedIndex& index, const ListSizes& sizes, const int32_t* bounds,
                                 const StageLists& to, uint32_t reciprocal, int64_t at, int stage, int lane) {
  const int64_t first_row = at * kQuarterRows, list = at * sizes.stages + stage;
  const Quarter quarter(index, sizes, bounds, first_row + lane, stage, lane);
  const int64_t before = elements_before(index, sizes, first_row) + quarter.in_stages;
  const int64_t begin = first_unit(before, list), end = first_unit(before + quarter.all, list + 1);
  if (lane == 0) {
    to.steps[list] = {int32_t(begin), (quarter.all + kUnit - 1) / kUnit | stage << Step::kStageShift};
    if (list + 1 == sizes.lists()) to.counts[sizes.groups] = int32_t(end);
  }
  write_list(index, sizes, quarter, reciprocal, stage, lane, int(end - begin), to.places + begin * kUnit,
             to.sources + begin * kUnit);
}

// By a warp: leaves out the steps of a row group in which no quarter has elements.
__device__ inline void leave_out_empty(const ListSizes& sizes, const StageLists& to, int64_t group, int lane) {
  Step* const steps = to.steps + group * kQuarters * sizes.stages;
  int kept = 0;
#pragma unroll 1
  for (int first = 0; first < sizes.stages; first += 32) {
    Step step[kQuarters] = {};
    int units = 0;
#pragma unroll
    for (int q = 0; q < kQuarters; ++q) {
      if (first + lane < sizes.stages) step[q] = steps[q * sizes.stages + first + lane];
      units += step[q].units();
    }
    // A step moves to a place that was read, in this turn or before.
    const uint32_t kept_lanes = __ballot_sync(kAll, units > 0);
    __syncwarp();
    const int place = kept + __popc(kept_lanes & ((1u << lane) - 1));
#pragma unroll
    for (int q = 0; q < kQuarters; ++q) {
      if (step[q].units() == 0) ++step[q].word;  // the unit of zeros
      if (units > 0) steps[q * sizes.stages + place] = step[q];
    }
    kept += __popc(kept_lanes);
    __syncwarp();
  }
  if (lane == 0) to.counts[group] = kept;
}

}  // namespace lists_stages
}  // namespace sparsek::cuda
