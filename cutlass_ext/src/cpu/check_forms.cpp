// SPDX-License-Identifier: Apache-2.0
#include "cpu/check_forms.h"

#include <cstring>
#include <utility>

#include "abi/dtype.h"

namespace sparsek::cpu {
namespace {

int64_t index_at(const void* data, int32_t type, int64_t i) {
  return type == SPARSEK_INT64 ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
}

}  // namespace

PlainProduct::PlainProduct(const sparsek_check_args& args)
    : args_(args), a_(*args.a), turned_over_(args.op == SPARSEK_DDS || args.op == SPARSEK_DDS_T) {
  args_.a = &a_;
  // C = B op(A) is C^T = op(A)^T B^T, and what is row-major is column-major then.
  const bool transposes = args.op == SPARSEK_DSD_T || args.op == SPARSEK_DDS;
  if (transposes) transpose_matrix();
  const auto order = [&](int32_t given) {
    return (given == SPARSEK_COLUMN_MAJOR) != turned_over_ ? SPARSEK_COLUMN_MAJOR : SPARSEK_ROW_MAJOR;
  };
  const int32_t order_b = order(args.order_b), order_c = order(args.order_c);
  args_.b = in_rows(args.b, a_.dtype, order_b, a_.cols, args.n, args.ldb);
  if (order_b == SPARSEK_COLUMN_MAJOR) args_.ldb = args.n;
  args_.c = in_rows(args.c, args.dtype_c, order_c, a_.rows, args.n, args.ldc);
  if (args.beta != 0) args_.c0 = in_rows(args.c0, args.dtype_c, order_c, a_.rows, args.n, args.ldc);
  if (order_c == SPARSEK_COLUMN_MAJOR) args_.ldc = args.n;
  if (turned_over_ && args.bias_kind != SPARSEK_BIAS_NONE) {
    args_.bias_kind = args.bias_kind == SPARSEK_BIAS_ROW ? SPARSEK_BIAS_COLUMN : SPARSEK_BIAS_ROW;
  }
}

void PlainProduct::transpose_matrix() {
  const sparsek_bsr given = a_;
  const int64_t block_rows = (given.rows + given.block_m - 1) / given.block_m;
  const int64_t block_cols = (given.cols + given.block_k - 1) / given.block_k;
  const size_t element = static_cast<size_t>(dtype_bytes(given.dtype));
  const int64_t area = given.block_m * given.block_k;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> of_column(static_cast<size_t>(block_cols));
  for (int64_t r = 0; r < block_rows; ++r) {
    for (int64_t e = index_at(given.row_ptr, given.index_type, r); e < index_at(given.row_ptr, given.index_type, r + 1);
         ++e) {
      of_column[index_at(given.col_idx, given.index_type, e)].emplace_back(r, e);
    }
  }
  std::vector<char>& values = copies_.emplace_back(static_cast<size_t>(given.nnzb * area) * element);
  row_ptr_.push_back(0);
  char* to = values.data();
  for (const auto& column : of_column) {
    for (const auto& [row, block] : column) {
      col_idx_.push_back(row);
      const char* const from = static_cast<const char*>(given.values) + static_cast<size_t>(block * area) * element;
      for (int64_t j = 0; j < given.block_k; ++j) {
        for (int64_t i = 0; i < given.block_m; ++i, to += element) {
          std::memcpy(to, from + static_cast<size_t>(i * given.block_k + j) * element, element);
        }
      }
    }
    row_ptr_.push_back(static_cast<int64_t>(col_idx_.size()));
  }
  a_.rows = given.cols;
  a_.cols = given.rows;
  a_.block_m = given.block_k;
  a_.block_k = given.block_m;
  a_.index_type = SPARSEK_INT64;
  a_.row_ptr = row_ptr_.data();
  a_.col_idx = col_idx_.data();
  a_.values = values.data();
}

const void* PlainProduct::in_rows(const void* data, int32_t dtype, int32_t order, int64_t rows, int64_t cols,
                                  int64_t ld) {
  if (order == SPARSEK_ROW_MAJOR) return data;
  const size_t element = static_cast<size_t>(dtype_bytes(dtype));
  std::vector<char>& copy = copies_.emplace_back(static_cast<size_t>(rows * cols) * element);
  char* to = copy.data();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j, to += element) {
      std::memcpy(to, static_cast<const char*>(data) + static_cast<size_t>(j * ld + i) * element, element);
    }
  }
  return copy.data();
}

}  // namespace sparsek::cpu
