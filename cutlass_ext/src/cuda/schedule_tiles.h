// SPDX-License-Identifier: Apache-2.0
// Makes row groups and the schedule of their tiles by kernels, as plan/plan.cpp does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/plan.h"
#include "plan/row_grid.h"

namespace sparsek::cuda {

// The input of the schedule. All arrays are in device memory.
struct Schedule {
  RowGrid grid;
  int32_t groups, panels;
  int32_t panels_in_flight;
  int32_t workers;
  int32_t longest;        // an upper bound on the entries of a row group
  const int64_t* counts;  // (groups): entries of each row group, for a leader only
  const int64_t* begin;   // (groups): first entry of each row group
};

// The bytes of device memory that schedule_tiles needs as scratch.
size_t schedule_scratch(int32_t groups);

// Fills slot_row (groups, slots) and tiles (groups * panels). Enqueued in the stream.
void schedule_tiles(const Schedule& schedule, void* scratch, int64_t* slot_row, WorkTile* tiles, cudaStream_t stream);

}  // namespace sparsek::cuda
