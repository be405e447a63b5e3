// SPDX-License-Identifier: Apache-2.0
// Makes the union lists of row groups by a kernel, as plan/column_union.h does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/entry_range.h"
#include "cuda/index_verdict.h"
#include "cuda/schedule_tiles.h"
#include "plan/entry_places.h"
#include "plan/row_grid.h"

namespace sparsek::cuda {

// A pattern in device memory and the row groups of its plan.
struct GroupedPattern {
  RowGrid grid;
  EntryPlaces places;
  int32_t block_cols, block_k;
  CheckedIndex index;
  int32_t* taken;  // (1): places of entries that groups have, 0 at first; only with grid.order
};

// Where a plan's entries are written, in device memory.
struct UnitedEntries {
  EntryRange* ranges;    // (groups): for groups that are their own leaders only
  int32_t* entry_k;      // (capacity)
  int32_t* entry_block;  // (capacity, slots)
};

// Fills ranges, and of the other arrays what lies within the ranges. All are empty where the index has a fault. One
// kernel in the stream.
void unite_columns(const GroupedPattern& pattern, const UnitedEntries& to, cudaStream_t stream);

// Whether there are so few row groups and tiles that one kernel makes the entries and the list of the tiles too.
bool is_made_at_once(const Schedule& schedule);

// That kernel: unite_columns and schedule_tiles.
void unite_and_schedule(const GroupedPattern& pattern, const UnitedEntries& entries, const Schedule& schedule,
                        const ScheduledTiles& to, cudaStream_t stream);

}  // namespace sparsek::cuda
