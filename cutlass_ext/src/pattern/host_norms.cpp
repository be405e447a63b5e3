// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "abi/sum_type.h"
#include "pattern/host_elements.h"
#include "pattern/host_parts.h"
#include "pattern/sum_order.h"

namespace sparsek::pattern {
namespace {

template <class T>
using SumType = decltype(load(T{}));

// The larger one; NaN where there is one.
template <class S>
S larger(S a, S b) {
  return a > b || a != a ? a : b;
}

// The norm of `lines` lines of `length` elements, of a block of so many elements.
template <sparsek_norm kNorm, class T>
SumType<T> norm_of(const T* from, int64_t ld, int64_t lines, int64_t length, int64_t full_length, int64_t elements) {
  using S = SumType<T>;
  constexpr int kVector = kVectorBytes / sizeof(T);
  const int count = lanes_for(elements, kVector) * kVector;  // a power of two
  S sums[kMostLanes * kVector] = {};
  for (int64_t i = 0; i < lines; ++i) {
    for (int64_t j = 0; j < length; ++j) {
      S& sum = sums[(i * full_length + j) & (count - 1)];
      const S x = load(from[i * ld + j]);
      sum = kNorm == SPARSEK_NORM_L2   ? sum + x * x
            : kNorm == SPARSEK_NORM_L1 ? sum + std::abs(x)
                                       : larger(sum, std::abs(x));
    }
  }
  const auto add = [](S a, S b) { return kNorm == SPARSEK_NORM_MAX ? larger(a, b) : a + b; };
  for (int lane = 0; lane < count / kVector; ++lane) {
    fold(sums + lane * kVector, kVector, add);
    sums[lane] = sums[lane * kVector];
  }
  fold(sums, count / kVector, add);
  return kNorm == SPARSEK_NORM_L2 ? std::sqrt(sums[0]) : sums[0];
}

// Calls work with a norm that is known when it is compiled.
template <class Work>
void with_norm(sparsek_norm norm, Work work) {
  switch (norm) {
    case SPARSEK_NORM_MAX:
      return work(std::integral_constant<sparsek_norm, SPARSEK_NORM_MAX>());
    case SPARSEK_NORM_L1:
      return work(std::integral_constant<sparsek_norm, SPARSEK_NORM_L1>());
    case SPARSEK_NORM_L2:
      return work(std::integral_constant<sparsek_norm, SPARSEK_NORM_L2>());
  }
}

}  // namespace

void norm_dense_blocks(const MakeJob& job) {
  with_element(job.dtype, [&](auto* element) {
    with_norm(job.norm, [&](auto norm) {
      using T = std::remove_pointer_t<decltype(element)>;
      const BsrShape& shape = job.to.shape;
      auto* const norms = static_cast<SumType<T>*>(job.norms);
      const bool by_rows = job.order == SPARSEK_ROW_MAJOR;
      const int64_t size = int64_t{shape.block_m} * shape.block_k;
      for (int64_t row = 0; row < shape.block_rows; ++row) {
        const int64_t rows = std::min<int64_t>(shape.block_m, shape.rows - row * shape.block_m);
        for (int64_t col = 0; col < shape.block_cols; ++col) {
          const int64_t cols = std::min<int64_t>(shape.block_k, shape.cols - col * shape.block_k);
          const int64_t line = by_rows ? row * shape.block_m : col * shape.block_k;
          const int64_t at = by_rows ? col * shape.block_k : row * shape.block_m;
          norms[row * shape.block_cols + col] = norm_of<decltype(norm)::value>(
              static_cast<const T*>(job.source) + line * job.ld + at, job.ld, by_rows ? rows : cols,
              by_rows ? cols : rows, by_rows ? shape.block_k : shape.block_m, size);
        }
      }
    });
  });
}

void norm_blocks(const ValuesJob& job) {
  with_element(job.dtype, [&](auto* element) {
    with_norm(job.norm, [&](auto norm) {
      using T = std::remove_pointer_t<decltype(element)>;
      const BsrShape& shape = job.a.shape;
      const int64_t size = int64_t{shape.block_m} * shape.block_k;
      for (int64_t row = 0; row < shape.block_rows; ++row) {
        const int64_t rows = std::min<int64_t>(shape.block_m, shape.rows - row * shape.block_m);
        for (int64_t e = job.a.row_ptr.get(row); e < job.a.row_ptr.get(row + 1); ++e) {
          static_cast<SumType<T>*>(job.out)[e] =
              norm_of<decltype(norm)::value>(static_cast<const T*>(job.a.values) + job.a.block(e) * size, shape.block_k,
                                             rows, shape.block_k, shape.block_k, size);
        }
      }
    });
  });
}

}  // namespace sparsek::pattern
