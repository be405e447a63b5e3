// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/row_order.h"

namespace sparsek {

// The entries [begin, end) of a row group in the plan.
struct EntryRange {
  int32_t begin, end;
  int32_t count() const { return end - begin; }
};

// Fills plan.slot_row, entry_k and entry_block for row groups of plan.shape.tile_m rows, and returns the range of
// each. Groups whose slots lie in the same block rows share their entries.
std::vector<EntryRange> make_row_groups(RowOrders& orders, Plan& plan);

}  // namespace sparsek
