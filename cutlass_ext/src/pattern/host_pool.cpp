// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "pattern/host.h"
#include "pattern/host_elements.h"

namespace sparsek::pattern {
namespace {

template <class T>
using SumType = decltype(load(T{}));

// The rows of one block: out gets the means of their columns, then the maxima and the minima.
template <class T>
void pool_block(const T* from, int64_t row_stride, int64_t rows, int64_t columns, SumType<T>* out) {
  using S = SumType<T>;
  S* const sums = out;
  S* const most = out + columns;
  S* const least = most + columns;
  for (int64_t j = 0; j < columns; ++j) sums[j] = most[j] = least[j] = load(from[j]);
  for (int64_t i = 1; i < rows; ++i) {
    const T* const row = from + i * row_stride;
    for (int64_t j = 0; j < columns; ++j) {
      const S x = load(row[j]);
      sums[j] += x;
      most[j] = x > most[j] || x != x ? x : most[j];
      least[j] = x < least[j] || x != x ? x : least[j];
    }
  }
  for (int64_t j = 0; j < columns; ++j) sums[j] /= static_cast<S>(rows);
}

}  // namespace

void pool_on_host(const RowPool& job) {
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const int64_t blocks = job.blocks(), of_block = kPooled * job.head_size;
    auto* out = static_cast<SumType<T>*>(job.out);
    for (int64_t batch = 0; batch < job.batch; ++batch) {
      for (int64_t head = 0; head < job.heads; ++head) {
        const T* const x = static_cast<const T*>(job.x) + batch * job.stride[0] + head * job.stride[1];
        for (int64_t block = 0; block < blocks; ++block, out += of_block) {
          const int64_t first = block * job.block;
          pool_block(x + first * job.stride[2], job.stride[2], std::min(job.block, job.seq - first), job.head_size,
                     out);
        }
      }
    }
  });
}

}  // namespace sparsek::pattern
