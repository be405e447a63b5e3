// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "plan/bsr_index.h"

namespace sparsek {

struct RowOrder {
  std::vector<int32_t> rows;  // a permutation of 0 .. block_rows - 1, or padded as by match_rows
  int64_t loads;              // loads of block rows of B: the sum over groups of the union of their block columns
};

// An order of the block rows in which each group of `group` consecutive rows has many block columns in common; rows
// within a group ascend. It is the natural order where no other saves at least 3 % of the loads of B without making the
// longest group longer than kMostLonger (pairing.h) allows. group: a power of two.
RowOrder order_rows(const BsrIndex& index, int32_t group);

// Whether the matrix has so many more block columns than blocks that arrays as long as it is wide would be a waste.
bool is_wide(const BsrIndex& index);
// The index with its block columns numbered anew, in the same order, without those that have no block. `cols` stays.
BsrIndex narrowed(const BsrIndex& index);

// Caches the orders of one pattern: the choice of a kernel and the plan need the same ones. Thread-safe.
class RowOrders {
 public:
  // index must outlive this.
  explicit RowOrders(const BsrIndex& index) : index_(index) {}

  const BsrIndex& index() const { return index_; }
  // The index of the same pattern for work that needs memory for each block column.
  const BsrIndex& narrow() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return locked_narrow();
  }
  // The result of order_rows. The reference is valid for the lifetime of this object.
  const RowOrder& of(int32_t group) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = by_group_.find(group);
    if (known != by_group_.end()) return known->second;
    return by_group_.emplace(group, order_rows(locked_narrow(), group)).first->second;
  }

 private:
  const BsrIndex& locked_narrow() {
    if (is_wide(index_) && !narrowed_) narrowed_ = narrowed(index_);
    return narrowed_ ? *narrowed_ : index_;
  }

  const BsrIndex& index_;
  std::mutex mutex_;  // of what follows
  std::optional<BsrIndex> narrowed_;
  std::map<int32_t, RowOrder> by_group_;
};

}  // namespace sparsek
