// SPDX-License-Identifier: Apache-2.0
// Rules by which block rows are put into pairs, and pairs into larger bundles (plan/row_matching.h), and by which
// similar rows are found (plan/row_order.h): those that the host and the GPU share. Row and column are those of blocks.
#pragma once

#include <cstdint>

namespace sparsek {

// The most rows that are matched with each other.
constexpr int32_t kMostMatched = 512;

// How good it is to pair bundles i and j, two different numbers below kMostMatched, that have `common` columns in
// common. Ties go to the partner whose number differs in lower bits, so that neighbours stay together where nothing
// else is better. No two partners of a bundle tie completely, so a merit identifies the partner. The merit of a pair
// that is allowed is above kNoMerit.
using Merit = uint32_t;
constexpr Merit kNoMerit = 0;

constexpr uint32_t kMostCommon = UINT32_MAX / kMostMatched;  // more count as so many

constexpr Merit merit_of(uint32_t common, int32_t i, int32_t j) {
  const uint32_t counted = common < kMostCommon ? common : kMostCommon;
  return counted * kMostMatched + static_cast<uint32_t>(kMostMatched - (i ^ j));
}
constexpr int32_t partner_of(Merit merit, int32_t i) {
  return i ^ (kMostMatched - static_cast<int32_t>(merit % kMostMatched));
}

// Limit on the blocks of a group, as a multiple of the blocks of the longest group of neighbours (0, 1, ...). A tile is
// computed by one worker: if the longest rows came together, all other workers would wait for it.
constexpr double kMostLonger = 1.1;
constexpr int64_t most_blocks(int64_t longest) {
  return static_cast<int64_t>(kMostLonger * static_cast<double>(longest));
}

// Whether another order than the natural one is worth its while. loads: of block rows of B, the sum over groups of the
// union of their columns; longest: blocks of the longest group.
constexpr bool is_better_order(int64_t loads, int64_t longest, int64_t natural_loads, int64_t natural_longest) {
  constexpr double kWorthIt = 0.97;
  return loads < static_cast<int64_t>(kWorthIt * static_cast<double>(natural_loads)) &&
         static_cast<double>(longest) <= kMostLonger * static_cast<double>(natural_longest);
}

// How many consecutive rows of an order are matched with each other: fewer where there are many columns, but at least
// `group`, the rows of a row group.
constexpr int32_t rows_matched_together(int64_t columns, int32_t group) {
  constexpr int64_t kMostWords = int64_t{1} << 21;  // of 64 columns, compared when the first pairs are made
  const int64_t words = (columns + 63) / 64;
  int32_t rows = kMostMatched;
  while (rows > group && int64_t{rows} * rows / 2 * words > kMostWords) rows /= 2;
  return rows > group ? rows : group;
}

// The hashes of a column are made one from the other: the first from the column itself, by one round of a
// multiplicative hash each.
constexpr int kMinHashes = 3;
constexpr uint32_t next_hash(uint32_t hash) { return (hash ^ hash >> 16) * 0x9e3779b1u + 0x7f4a7c15u; }
constexpr uint32_t well_mixed(uint32_t hash) { return hash ^ hash >> 15; }

}  // namespace sparsek
