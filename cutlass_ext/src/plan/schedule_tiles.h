// SPDX-License-Identifier: Apache-2.0
// The schedule of tiles, and of parts of tiles, on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/row_groups.h"

namespace sparsek {

// The unit of which there is a tile, or a part of one, for each panel of columns: a row group, or one of its parts.
struct Piece {
  int32_t group;
  int32_t part, parts;   // parts = 1: the whole group
  int32_t begin, count;  // of the entries
};

// Cuts each row group into parts[group] pieces of nearly equal length and returns them sorted: the longest first, equal
// lengths by group and part.
std::vector<Piece> cut(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts);

// An estimate of the time until all tiles are done, in entries: each worker takes the next tile when it is done with
// its last one, and an entry takes the same time everywhere.
double makespan(const std::vector<Piece>& pieces, const PlanShape& shape);

// Fills plan.tiles, split_tiles and parts. plan.shape.panels_in_flight must be known.
void schedule_tiles(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts, Plan& plan);

}  // namespace sparsek
