// SPDX-License-Identifier: Apache-2.0
// Pooling of blocks of rows, as sparsek_pool_args describe it: checked, and with strides filled in.
#pragma once

#include <cstdint>

#include "sparsek.h"

namespace sparsek {

constexpr int kPooled = 3;  // numbers of each column: the mean, the maximum, the minimum

struct RowPool {
  int64_t batch, heads, seq, head_size, block;
  const void* x;
  int64_t stride[3];  // of a batch, a head and a row, in elements
  void* out;
  sparsek_dtype dtype;
  sparsek_stream stream;

  int64_t blocks() const { return seq / block + (seq % block != 0 ? 1 : 0); }
};

}  // namespace sparsek
