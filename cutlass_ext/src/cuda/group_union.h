// SPDX-License-Identifier: Apache-2.0
// Makes the union lists of row groups by a kernel, as plan/column_union.h does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/entry_range.h"
#include "cuda/index_verdict.h"
#include "plan/entry_places.h"
#include "plan/row_grid.h"

namespace sparsek::cuda {

// A pattern in device memory and the row groups of its plan.
struct GroupedPattern {
  RowGrid grid;
  EntryPlaces places;
  int32_t block_k;
  CheckedIndex index;
  int32_t* taken;  // (1): places of entries that groups have, 0 at first; only with grid.order
};

// Fills ranges (groups), for groups that are their own leaders only, and of entry_k (capacity) and entry_block
// (capacity, slots) what lies within the ranges. All are empty where the index has a fault. One kernel in the stream.
void unite_columns(const GroupedPattern& pattern, EntryRange* ranges, int32_t* entry_k, int32_t* entry_block,
                   cudaStream_t stream);

}  // namespace sparsek::cuda
