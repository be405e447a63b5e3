// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bsr_index.h"

namespace sparsek {

// How many times the blocks of the longest group of neighbours (0, 1, ...) a group may have. A tile is one worker's:
// where the longest block rows came together, all others would wait for theirs.
constexpr double kMostLonger = 1.1;

// How many block rows that follow each other in an order are matched with each other.
int32_t rows_matched_together(const BsrIndex& index, int32_t group);

// Puts block rows that have many block columns in common into groups of `group`, a power of two: first into pairs, then
// these into pairs, and so on. Of the pairs that are left, the one with the most columns in common comes first, unless it
// is longer than kMostLonger allows (greedy matching: without that limit the pairs of one level save at least half of what
// the best would, and on random patterns nearly all of it). What is too long for all that are left is paired the longest
// with the shortest.
//
// order: each block row once. Rows are only matched with others of the same few hundred there, so that the time grows
// with the rows and not with their square.
//
// Returns the rows group by group. Where their number is no multiple of `group`, some of the returned are no block rows
// of the matrix, but numbers from block_rows on, each once.
std::vector<int32_t> match_rows(const BsrIndex& index, std::vector<int32_t> order, int32_t group);

}  // namespace sparsek
