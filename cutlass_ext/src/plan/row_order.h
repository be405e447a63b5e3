// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "plan/bsr_index.h"

namespace sparsek {

struct RowOrder {
  std::vector<int32_t> rows;  // a permutation of 0 .. block_rows - 1, or of as many more as make the last group whole
  int64_t loads;              // of block rows of B: the sizes of the unions of each group's block columns
};

// An order of the block rows in which every `group` that follow each other have many block columns in common, each
// group in ascending order. The natural order where another would not save at least 3 % of the loads of B, or would
// make the group with the most blocks longer than kMostLonger (row_matching.h) allows. group: a power of two.
RowOrder order_rows(const BsrIndex& index, int32_t group);

// The orders of one pattern, each found once: what chooses a kernel may ask for the one that the plan needs.
class RowOrders {
 public:
  // index must outlive this.
  explicit RowOrders(const BsrIndex& index) : index_(index) {}

  const BsrIndex& index() const { return index_; }
  // That of order_rows. The reference is valid as long as this is.
  const RowOrder& of(int32_t group) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [found, added] = by_group_.try_emplace(group);
    if (added) found->second = order_rows(index_, group);
    return found->second;
  }

 private:
  const BsrIndex& index_;
  std::mutex mutex_;
  std::map<int32_t, RowOrder> by_group_;
};

}  // namespace sparsek
