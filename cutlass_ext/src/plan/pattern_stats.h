// SPDX-License-Identifier: Apache-2.0
// What the choice of a kernel goes by: figures of a pattern, from its index.
#pragma once

#include <cstdint>

#include "plan/bsr_index.h"
#include "plan/row_order.h"

namespace sparsek {

// How neighbouring block rows share block columns when so many of them are computed together.
struct GroupLoads {
  int64_t loads = 0;    // of block rows of B: the sizes of the unions of the groups' block columns
  int64_t longest = 0;  // the largest of these
};

struct PatternStats {
  double density = 0;       // blocks stored, as a share of all
  double row_spread = 0;    // standard deviation of the blocks of a block row, as a share of their mean
  int64_t longest_row = 0;  // blocks of the longest block row
  // Of row groups of 64 and of 128 rows; where a block row is as tall, each is a group.
  GroupLoads rows64, rows128;
  // Of groups of 128 rows, in the order that the planner gives the block rows (row_order.h), where it may give them one.
  int64_t ordered_loads = 0;

  const GroupLoads& of_height(int32_t rows) const { return rows > 64 ? rows128 : rows64; }
};

PatternStats pattern_stats(RowOrders& orders);

// The same where of the index only the longest block row is known: what a pattern of independent random blocks has on
// average.
PatternStats expected_stats(const BsrShape& shape, int64_t longest_row);

}  // namespace sparsek
