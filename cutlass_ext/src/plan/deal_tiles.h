// SPDX-License-Identifier: Apache-2.0
// Deals tiles, and parts of tiles, out to the workers, on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/row_groups.h"

namespace sparsek {

// The unit that is dealt out once for each panel of columns: a row group, or one of its parts.
struct Piece {
  int32_t group;
  int32_t part, parts;   // parts = 1: the whole group
  int32_t begin, count;  // of the entries
};

// Cuts each row group into parts[group] pieces of nearly equal length and returns them in the order of dealing: the
// longest first, equal lengths by group and part.
std::vector<Piece> cut(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts);

// The result of dealing.
struct Dealt {
  std::vector<int32_t> worker_of;  // (tiles): the worker of each tile, in the order of dealing
  double most = 0;                 // the work of the busiest worker, in entries
};

// Deals the tiles of all panels out, `shape.panels_in_flight` panels at a time so that those of B stay in L2, and
// within these longest first, each to the worker with the least work so far (Graham's LPT rule: the spread at the end
// is at most one tile). Long row groups (is_long) come first, so that this last tile is not one of theirs.
Dealt deal(const std::vector<Piece>& pieces, const PlanShape& shape);

// Fills plan.tiles, worker_begin, split_tiles and parts. plan.shape.panels_in_flight must be known.
void deal_tiles(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts, Plan& plan);

}  // namespace sparsek
