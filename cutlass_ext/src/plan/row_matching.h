// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bsr_index.h"

namespace sparsek {

// Limit on the blocks of a group, as a multiple of the blocks of the longest group of neighbours (0, 1, ...). A tile is
// computed by one worker: if the longest block rows came together, all other workers would wait for it.
constexpr double kMostLonger = 1.1;

// How many consecutive block rows of an order are matched with each other.
int32_t rows_matched_together(const BsrIndex& index, int32_t group);

// Puts block rows that have many block columns in common into groups of `group`, a power of two: first into pairs, then
// these into pairs, and so on. The matching is greedy: the pair with the most columns in common comes first, unless it
// is longer than kMostLonger allows. (Without that limit, greedy pairs of one level save at least half of what the best
// matching would, and on random patterns nearly all of it.) Rows that are too long for every remaining partner are
// paired the longest with the shortest.
//
// order: each block row once. Rows are matched only within the same few hundred consecutive rows of it, so that the
// time grows linearly with the rows.
//
// Returns the rows group by group. Where their number is not a multiple of `group`, the result is padded with numbers
// from block_rows on, each once, which are not rows of the matrix.
std::vector<int32_t> match_rows(const BsrIndex& index, std::vector<int32_t> order, int32_t group);

}  // namespace sparsek
