// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "plan/bsr_index.h"

namespace sparsek {

struct RowOrder {
  std::vector<int32_t> rows;  // a permutation of 0 .. block_rows - 1, or padded as by match_rows
  int64_t loads;              // loads of block rows of B: the sum over groups of the union of their block columns
};

// An order of the block rows in which each group of `group` consecutive rows has many block columns in common; rows
// within a group ascend. It is the natural order where no other saves at least 3 % of the loads of B without making the
// longest group longer than kMostLonger (row_matching.h) allows. group: a power of two.
RowOrder order_rows(const BsrIndex& index, int32_t group);

// Caches the orders of one pattern: the choice of a kernel and the plan need the same ones. Thread-safe.
class RowOrders {
 public:
  // index must outlive this.
  explicit RowOrders(const BsrIndex& index) : index_(index) {}

  const BsrIndex& index() const { return index_; }
  // The result of order_rows. The reference is valid for the lifetime of this object.
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
