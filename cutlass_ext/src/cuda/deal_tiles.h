// SPDX-License-Identifier: Apache-2.0
// Makes row groups and deals tiles out to workers by kernels, as plan/plan.cpp does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/plan.h"
#include "plan/row_grid.h"

namespace sparsek::cuda {

// The input of dealing. All arrays are in device memory.
struct Deal {
  RowGrid grid;
  int32_t groups, panels;
  int32_t panels_in_flight;
  int32_t workers;
  double tile_cost;
  int32_t longest;        // an upper bound on the entries of a row group
  const int64_t* counts;  // (groups): entries of each row group, for a leader only
  const int64_t* begin;   // (groups): first entry of each row group
};

// The bytes of device memory that deal_tiles needs as scratch.
size_t deal_scratch(int32_t groups, int32_t panels);

// Fills slot_row (groups, slots), worker_begin (workers + 1) and tiles (groups * panels). Enqueued in the stream.
void deal_tiles(const Deal& deal, void* scratch, int64_t* slot_row, int32_t* worker_begin, WorkTile* tiles,
                cudaStream_t stream);

}  // namespace sparsek::cuda
