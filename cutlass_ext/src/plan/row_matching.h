// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bsr_index.h"

namespace sparsek {

// Block rows in an order, and what it costs.
struct MatchedRows {
  // Group by group. Where the number of block rows is not a multiple of the group's, the result is padded with numbers
  // from block_rows on, each once, which are not rows of the matrix.
  std::vector<int32_t> rows;
  int64_t loads = 0;    // loads of block rows of B: the sum over groups of the union of their block columns
  int64_t longest = 0;  // blocks of the longest group
};

// Puts block rows that have many block columns in common into groups of `group`, a power of two up to kMostMatched
// (plan/pairing.h): first into pairs, then these into pairs, and so on. The matching is greedy: the pair with the most
// columns in common comes first, unless it is longer than kMostLonger allows. (Without that limit, greedy pairs of one
// level save at least half of what the best matching would, and on random patterns nearly all of it.) Rows that are too
// long for every remaining partner are paired the longest with the shortest.
//
// order: each block row once. Rows are matched only within the same few hundred consecutive rows of it
// (rows_matched_together), so that the time grows linearly with the rows.
MatchedRows match_rows(const BsrIndex& index, std::vector<int32_t> order, int32_t group);

}  // namespace sparsek
