// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cpu/floating_point.h"
#include "pattern/host.h"
#include "pattern/host_elements.h"
#include "pattern/host_parts.h"

namespace sparsek::pattern {
namespace {

template <class T>
using SumType = decltype(load(T{}));

// Calls visit(row, col, the place of the element in values) for each element of each block, beyond M and K too.
template <class Visit>
void visit_elements(const Given& a, Visit visit) {
  const BsrShape& shape = a.shape;
  for (int64_t block_row = 0; block_row < shape.block_rows; ++block_row) {
    for (int64_t e = a.row_ptr.get(block_row); e < a.row_ptr.get(block_row + 1); ++e) {
      const int64_t col = a.col_idx.get(e) * shape.block_k;
      int64_t place = a.block(e) * shape.block_m * shape.block_k;
      for (int64_t i = 0; i < shape.block_m; ++i) {
        for (int64_t j = 0; j < shape.block_k; ++j) visit(block_row * shape.block_m + i, col + j, place++);
      }
    }
  }
}

int64_t dense_place(int64_t row, int64_t col, int64_t ld, sparsek_order order) {
  return order == SPARSEK_ROW_MAJOR ? row * ld + col : col * ld + row;
}

template <class T>
void expand(const ValuesJob& job) {
  const BsrShape& shape = job.a.shape;
  T* const out = static_cast<T*>(job.out);
  const bool by_rows = job.order == SPARSEK_ROW_MAJOR;
  for (int64_t line = 0; line < (by_rows ? shape.rows : shape.cols); ++line) {
    std::fill_n(out + line * job.ld, by_rows ? shape.cols : shape.rows, T{});
  }
  const T* const values = static_cast<const T*>(job.a.values);
  visit_elements(job.a, [&](int64_t row, int64_t col, int64_t place) {
    if (row < shape.rows && col < shape.cols) out[dense_place(row, col, job.ld, job.order)] = values[place];
  });
}

template <class T>
void scale(const ValuesJob& job) {
  using S = SumType<T>;
  const BsrShape& shape = job.a.shape;
  const T* const values = static_cast<const T*>(job.a.values);
  const auto factor = [](const void* factors, int64_t at, int64_t count) {
    return factors == nullptr || at >= count ? S{1} : static_cast<const S*>(factors)[at];
  };
  visit_elements(job.a, [&](int64_t row, int64_t col, int64_t place) {
    const S by_row = load(values[place]) * factor(job.row_factors, row, shape.rows);
    store(static_cast<T*>(job.out) + place, by_row * factor(job.column_factors, col, shape.cols));
  });
}

template <class T>
void combine(const ValuesJob& job) {
  using S = SumType<T>;
  const BsrShape& shape = job.a.shape;
  const auto *const a = static_cast<const T*>(job.a.values), *const b = static_cast<const T*>(job.b);
  const S alpha = static_cast<S>(job.alpha), beta = static_cast<S>(job.beta);
  // Where block_idx names the places, any of them may be in use.
  const int64_t blocks = job.a.block_idx.is_there() ? shape.nnzb : entries_of(job.a);
  const int64_t elements = blocks * shape.block_m * shape.block_k;
  for (int64_t i = 0; i < elements; ++i) {
    const S scaled = alpha * load(a[i]);
    store(static_cast<T*>(job.out) + i, job.what == Work::kAdd ? scaled + beta * load(b[i]) : scaled * load(b[i]));
  }
}

}  // namespace

void gather_blocks(const Given& index, sparsek_dtype dtype, const void* dense, int64_t ld, sparsek_order order,
                   void* values) {
  with_element(dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const BsrShape& shape = index.shape;
    visit_elements(index, [&](int64_t row, int64_t col, int64_t place) {
      const bool is_there = row < shape.rows && col < shape.cols;
      static_cast<T*>(values)[place] = is_there ? static_cast<const T*>(dense)[dense_place(row, col, ld, order)] : T{};
    });
  });
}

void work_on_host(const ValuesJob& job) {
  const cpu::DefaultFloatingPoint settings;
  const auto with = [&](auto work) { with_element(job.dtype, [&](auto* element) { work(element); }); };
  switch (job.what) {
    case Work::kToDense:
      return with([&](auto* element) { expand<std::remove_pointer_t<decltype(element)>>(job); });
    case Work::kGather:
      return gather_blocks(job.a, job.dtype, job.b, job.ld, job.order, job.out);
    case Work::kNorms:
      return norm_blocks(job);
    case Work::kSum:
      return sum_rows(job);
    case Work::kScale:
      return with([&](auto* element) { scale<std::remove_pointer_t<decltype(element)>>(job); });
    case Work::kMultiply:
    case Work::kAdd:
      return with([&](auto* element) { combine<std::remove_pointer_t<decltype(element)>>(job); });
  }
}

}  // namespace sparsek::pattern
