// SPDX-License-Identifier: Apache-2.0
// Statistics of a pattern, computed from its index, by which a kernel is chosen.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "abi/made_once.h"
#include "plan/bsr_index.h"
#include "plan/row_order.h"

namespace sparsek {

// How neighbouring rows share block columns when they are computed as groups. A row group may hold parts of block rows,
// or be a part of one: it loads all block columns of each block row that it touches.
struct GroupLoads {
  int64_t loads = 0;    // loads of block rows of B: the sum over groups of the union of their block columns
  int64_t longest = 0;  // the largest union of one group
};

struct PatternStats {
  double density = 0;          // stored blocks / all blocks
  double row_spread = 0;       // standard deviation / mean of the blocks of a block row
  int64_t longest_row = 0;     // blocks of the longest block row
  GroupLoads rows64, rows128;  // for row groups of 64 and of 128 rows, in the order of the matrix
  // Loads for groups of 128 rows in the order that the planner chooses (row_order.h), where it may reorder block rows.
  int64_t ordered_loads = 0;
};

PatternStats pattern_stats(RowOrders& orders);

// Statistics that are computed when they are first needed. Thread-safe.
class LazyStats {
 public:
  LazyStats() = default;
  ~LazyStats() { delete stats_.load(); }
  LazyStats(const LazyStats&) = delete;
  LazyStats& operator=(const LazyStats&) = delete;

  // work() computes them; where it throws, the next call tries again.
  template <class Work>
  const PatternStats& get(Work&& work) {
    return made_once(stats_, [&] { return std::make_unique<const PatternStats>(work()); });
  }

 private:
  std::atomic<const PatternStats*> stats_{nullptr};
};

// The expected statistics of a pattern of independent random blocks, for an index of which only the longest block row
// is known.
PatternStats expected_stats(const BsrShape& shape, int64_t longest_row);

}  // namespace sparsek
