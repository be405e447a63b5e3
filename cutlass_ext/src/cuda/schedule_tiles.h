// SPDX-License-Identifier: Apache-2.0
// Makes row groups and the schedule of their tiles by kernels, as plan/plan.cpp does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/entry_range.h"
#include "plan/plan.h"
#include "plan/row_grid.h"

namespace sparsek::cuda {

// The input of the schedule. All arrays are in device memory.
struct Schedule {
  RowGrid grid;
  int32_t groups, panels;
  int32_t tile_n;         // columns of a panel
  int32_t element_bytes;  // of B
  int32_t block_k;
  int32_t panels_in_flight;  // 0: chosen
  int32_t workers;
  int32_t longest;           // an upper bound on the entries of a row group
  const EntryRange* ranges;  // (groups): entries of each row group, for a leader only
  const int32_t* entry_k;    // first row of B of each entry
  const int32_t* blocks;     // (1): of the matrix
};

// What it is written to, in device memory.
struct ScheduledTiles {
  int64_t* slot_row;            // (groups, slots)
  WorkTile* tiles;              // (groups * panels)
  unsigned long long* entries;  // (1): of all leaders
  unsigned long long* zero;     // (1): set to 0
};

// The bytes of device memory that schedule_tiles needs as scratch; 0 where there are so few row groups that it
// sorts them in one kernel.
size_t schedule_scratch(int32_t groups);

// Enqueued in the stream.
void schedule_tiles(const Schedule& schedule, void* scratch, const ScheduledTiles& to, cudaStream_t stream);

}  // namespace sparsek::cuda
