// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "pattern/job.h"

namespace sparsek::pattern {

// Writes an index in host memory, entry by entry, and no more of it than there is room for.
class IndexWriter {
 public:
  explicit IndexWriter(const Made& to) : to_(to) { to_.row_ptr.set(0, 0); }

  void add(int64_t col, int64_t block = 0) {
    if (total_ < to_.shape.nnzb) {
      to_.col_idx.set(total_, col);
      if (to_.block_idx.is_there()) to_.block_idx.set(total_, block);
      if (to_.row_idx.is_there()) to_.row_idx.set(total_, row_);
    }
    ++total_;
  }
  void end_row() { to_.row_ptr.set(++row_, std::min(total_, to_.shape.nnzb)); }

  // Call one of the two last.
  void finish() {
    if (to_.blocks != nullptr) *to_.blocks = total_;
    *to_.fault = total_ > to_.shape.nnzb ? int64_t{SPARSEK_OVER_CAPACITY} : 0;
  }
  void finish_with(uint64_t fault) {
    for (int64_t row = 0; row <= to_.shape.block_rows; ++row) to_.row_ptr.set(row, 0);
    if (to_.blocks != nullptr) *to_.blocks = 0;
    *to_.fault = reported_fault(fault);
  }

 private:
  const Made to_;
  int64_t total_ = 0, row_ = 0;
};

}  // namespace sparsek::pattern
