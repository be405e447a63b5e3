// SPDX-License-Identifier: Apache-2.0
// Which tiles are split along K.
//
// A tile is computed by one worker. Where a row group is far longer than the others, or there are fewer tiles than
// workers, that worker is busy when the others are done; a tile that is split into parts is shared. The costs of
// splitting, in units of one entry:
//
//   tile_cost  for each further part: a worker fills its ring again, and stores sums in fp32 instead of C
//   join_cost  once: the second kernel, and its wait for the last part
//   part_cost  for each part: reading its sums
//
// The planner estimates the makespan for ever shorter lengths of a part, and takes the length with which the last
// worker ends first. So parts are never too short to pay off, and a plan that is balanced stays whole.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/row_groups.h"

namespace sparsek {

// (groups): the number of parts of the tiles of each row group; 1: whole. shape.panels_in_flight must be set.
std::vector<int32_t> choose_parts(const std::vector<EntryRange>& groups, const PlanShape& shape);

}  // namespace sparsek
