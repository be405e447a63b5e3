// SPDX-License-Identifier: Apache-2.0
// Which tiles are split along K.
//
// A tile is one worker's. Where a row group is far longer than the others, or there are fewer tiles than workers, its
// worker is busy when the others are done; in parts, the tile is shared. What that costs, in units of one entry:
//
//   tile_cost  each part more: a worker fills its ring and stores sums again, in fp32 what was C before
//   join_cost  once: a second kernel, and its wait for the last part
//   part_cost  each part: to read its sums again
//
// A plan is dealt out as if it were split at ever shorter lengths, and the one that is done first is taken. So parts
// are never shorter than pays, and a plan that is balanced well enough as it is remains whole.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/row_groups.h"

namespace sparsek {

// Into how many parts the tiles of each row group are cut; 1: they stay whole. shape.panels_in_flight must be known.
std::vector<int32_t> choose_parts(const std::vector<EntryRange>& groups, const PlanShape& shape);

}  // namespace sparsek
