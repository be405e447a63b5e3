// SPDX-License-Identifier: Apache-2.0
#include "plan/transpose_index.h"

#include <numeric>
#include <utility>

namespace sparsek {

BsrShape transposed(const BsrShape& shape) {
  BsrShape result = shape;
  std::swap(result.rows, result.cols);
  std::swap(result.block_m, result.block_k);
  std::swap(result.block_rows, result.block_cols);
  return result;
}

BsrIndex transpose_index(const BsrIndex& index) {
  BsrIndex result;
  static_cast<BsrShape&>(result) = transposed(index);
  // Sorted by counting, which keeps the order of the rows within each column.
  result.row_ptr.assign(static_cast<size_t>(index.block_cols) + 1, 0);
  for (const int32_t col : index.col_idx) ++result.row_ptr[static_cast<size_t>(col) + 1];
  std::partial_sum(result.row_ptr.begin(), result.row_ptr.end(), result.row_ptr.begin());
  std::vector<int32_t> next(result.row_ptr.begin(), result.row_ptr.end() - 1);
  result.col_idx.resize(index.col_idx.size());
  result.block_idx.resize(index.col_idx.size());
  for (int32_t row = 0; row < index.block_rows; ++row) {
    for (int32_t e = index.row_ptr[row]; e < index.row_ptr[row + 1]; ++e) {
      const auto to = static_cast<size_t>(next[index.col_idx[e]]++);
      result.col_idx[to] = row;
      result.block_idx[to] = index.block_idx.empty() ? e : index.block_idx[e];
    }
  }
  return result;
}

}  // namespace sparsek
