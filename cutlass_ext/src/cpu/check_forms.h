// SPDX-License-Identifier: Apache-2.0
// The check of products of other forms than SPARSEK_DSD with row-major operands: they are laid out as one.
#pragma once

#include <vector>

#include "plan/bsr_index.h"
#include "sparsek.h"

namespace sparsek::cpu {

// A product as the reference takes it, and its arrays.
class PlainProduct {
 public:
  // args.a has an int32 or int64 index, sorted, and blocks in its order. What is in its form already is not copied.
  explicit PlainProduct(const sparsek_check_args& args);
  PlainProduct(const PlainProduct&) = delete;
  PlainProduct& operator=(const PlainProduct&) = delete;

  const sparsek_check_args& args() const { return args_; }
  bool is_turned_over() const { return turned_over_; }

 private:
  void transpose_matrix();
  const void* in_rows(const void* data, int32_t dtype, int32_t order, int64_t rows, int64_t cols, int64_t ld);

  sparsek_check_args args_;
  sparsek_bsr a_;
  bool turned_over_;
  std::vector<int64_t> row_ptr_, col_idx_;
  std::vector<std::vector<char>> copies_;
};

}  // namespace sparsek::cpu
