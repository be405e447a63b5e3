// SPDX-License-Identifier: Apache-2.0
// How tiles, and parts of tiles, are dealt out to the workers on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/row_groups.h"

namespace sparsek {

// What is dealt out once for each panel of columns: a row group, or one of the parts that it was cut into.
struct Piece {
  int32_t group;
  int32_t part, parts;   // parts = 1: the whole
  int32_t begin, count;  // of the entries
};

// Each row group cut into parts[group] pieces of nearly equal length, in the order of dealing: the longest first, and
// those of the same length by group and part.
std::vector<Piece> cut(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts);

// What comes of dealing.
struct Dealt {
  std::vector<int32_t> worker_of;  // of each tile in the order of dealing
  double most = 0;                 // the work of the worker that has the most, in entries
};

// Deals the tiles of all panels out, `shape.panels_in_flight` panels at a time so that those of B stay in L2, and
// within these longest first, each to the worker with the least work so far (Graham's LPT rule: the spread at the end
// is at most one tile). Long row groups come ahead of all others, since that one tile should not be theirs (is_long).
Dealt deal(const std::vector<Piece>& pieces, const PlanShape& shape);

// Fills plan.tiles, worker_begin, split_tiles and parts. plan.shape.panels_in_flight must be known.
void deal_tiles(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts, Plan& plan);

}  // namespace sparsek
