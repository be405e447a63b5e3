// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "pattern/host_elements.h"
#include "pattern/host_parts.h"
#include "pattern/sum_order.h"

namespace sparsek::pattern {
namespace {

template <class T>
using SumType = decltype(load(T{}));

template <class T>
void sum_plainly(const ValuesJob& job) {
  using S = SumType<T>;
  constexpr int kVector = kVectorBytes / sizeof(T);
  const BsrShape& shape = job.a.shape;
  const int lanes = lanes_for(shape.block_k, kVector), count = lanes * kVector;  // a power of two
  for (int64_t row = 0; row < shape.rows; ++row) {
    S sums[kMostLanes * kVector] = {};
    const int64_t block_row = row / shape.block_m;
    for (int64_t e = job.a.row_ptr.get(block_row); e < job.a.row_ptr.get(block_row + 1); ++e) {
      const T* const from =
          static_cast<const T*>(job.a.values) + (job.a.block(e) * shape.block_m + row % shape.block_m) * shape.block_k;
      for (int32_t j = 0; j < shape.block_k; ++j) sums[j & (count - 1)] += load(from[j]);
    }
    for (int lane = 0; lane < lanes; ++lane) {
      fold(sums + lane * kVector, kVector, std::plus<S>());
      sums[lane] = sums[lane * kVector];
    }
    fold(sums, lanes, std::plus<S>());
    static_cast<S*>(job.out)[row] = sums[0];
  }
}

// Blocks lie as (block_k, block_m).
template <class T>
void sum_transposed(const ValuesJob& job) {
  using S = SumType<T>;
  const BsrShape& shape = job.a.shape;
  for (int64_t row = 0; row < shape.rows; ++row) {
    S sums[kColumnGroups] = {};
    const int64_t block_row = row / shape.block_m, begin = job.a.row_ptr.get(block_row);
    for (int64_t e = begin; e < job.a.row_ptr.get(block_row + 1); ++e) {
      const T* const from =
          static_cast<const T*>(job.a.values) + job.a.block(e) * shape.block_k * shape.block_m + row % shape.block_m;
      const int64_t lines = std::min<int64_t>(shape.block_k, shape.cols - job.a.col_idx.get(e) * shape.block_k);
      for (int64_t k = 0; k < lines; ++k) {
        sums[((e - begin) * shape.block_k + k) % kColumnGroups] += load(from[k * shape.block_m]);
      }
    }
    fold(sums, kColumnGroups, std::plus<S>());
    static_cast<S*>(job.out)[row] = sums[0];
  }
}

}  // namespace

void sum_rows(const ValuesJob& job) {
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    job.transposed ? sum_transposed<T>(job) : sum_plainly<T>(job);
  });
}

}  // namespace sparsek::pattern
