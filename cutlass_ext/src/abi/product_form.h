// SPDX-License-Identifier: Apache-2.0
// The forms in which back-ends get products. Where B is the left factor, the product is turned over: C = B op(A) is
// C^T = op(A)^T B^T, whose operands lie in memory as they are and have the other order. So two forms are left:
//
//   C = act(alpha op(A) B + beta C + bias)     op(A) is A or A^T, (outer, inner); B is (inner, n), C is (outer, n)
//   blocks of act(alpha X B + beta C)          SPARSEK_SDD
#pragma once

#include <cstdint>

#include "plan/bsr_index.h"
#include "sparsek.h"

namespace sparsek {

// Whether the product that was asked for is turned over.
constexpr bool is_turned_over(int32_t op) { return op == SPARSEK_DDS || op == SPARSEK_DDS_T; }
// Whether op(A) is A^T then.
constexpr bool transposes_a(int32_t op) { return op == SPARSEK_DSD_T || op == SPARSEK_DDS; }

constexpr int32_t other_order(int32_t order) {
  return order == SPARSEK_ROW_MAJOR ? SPARSEK_COLUMN_MAJOR : SPARSEK_ROW_MAJOR;
}
// The order and the kind of bias that the product has, turned over where it is.
constexpr int32_t order_in_form(int32_t op, int32_t order) { return is_turned_over(op) ? other_order(order) : order; }
constexpr int32_t bias_in_form(int32_t op, int32_t bias) {
  if (!is_turned_over(op)) return bias;
  return bias == SPARSEK_BIAS_ROW ? SPARSEK_BIAS_COLUMN : bias == SPARSEK_BIAS_COLUMN ? SPARSEK_BIAS_ROW : bias;
}

// A dense matrix in memory: rows, or where it is column-major columns, whose elements follow each other.
struct Lines {
  int64_t count, length;
};
constexpr Lines lines_of(int64_t rows, int64_t cols, int32_t order) {
  return order == SPARSEK_ROW_MAJOR ? Lines{rows, cols} : Lines{cols, rows};
}

// Elements of the blocks.
constexpr int64_t block_elements(const BsrShape& shape) { return shape.nnzb * shape.block_m * shape.block_k; }

constexpr int64_t inner_extent(int32_t op, const BsrShape& shape) { return transposes_a(op) ? shape.rows : shape.cols; }
constexpr int64_t outer_extent(int32_t op, const BsrShape& shape) { return transposes_a(op) ? shape.cols : shape.rows; }

// The operands of a product with n, whose orders are those of the form. The blocks of SPARSEK_SDD are one line.
constexpr Lines lines_of_x(const BsrShape& shape, int64_t n, int32_t order) { return lines_of(shape.rows, n, order); }
constexpr Lines lines_of_b(int32_t op, const BsrShape& shape, int64_t n, int32_t order) {
  return op == SPARSEK_SDD ? lines_of(n, shape.cols, order) : lines_of(inner_extent(op, shape), n, order);
}
constexpr Lines lines_of_c(int32_t op, const BsrShape& shape, int64_t n, int32_t order) {
  return op == SPARSEK_SDD ? Lines{1, block_elements(shape)} : lines_of(outer_extent(op, shape), n, order);
}

}  // namespace sparsek
