// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/bsr_index.h"

namespace sparsek {

struct RowOrder {
  std::vector<int32_t> rows;  // a permutation of 0 .. block_rows - 1
  int64_t loads;              // of block rows of B: the sizes of the unions of each group's block columns
  int64_t natural_loads;      // the same in the order 0, 1, ...
};

// An order of the block rows in which every `group` that follow each other have many block columns in common, each
// group in ascending order. The natural order where another would not save at least 3 % of the loads of B, or would
// give the group with the most blocks a tenth more of them.
RowOrder order_rows(const BsrIndex& index, int32_t group);

}  // namespace sparsek
