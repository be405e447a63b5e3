// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/entry_range.h"
#include "cuda/index_verdict.h"

namespace sparsek::cuda {

// The pattern of a matrix in device memory. Where its index has a fault, no row has a block.
struct RowPattern {
  int32_t block_rows, block_cols;
  CheckedIndex index;
};

#ifdef __CUDACC__
// The blocks of a row, which may be a number beyond the last. is_good: as the function of that name says.
__device__ inline EntryRange blocks_of(const RowPattern& pattern, bool is_good, int32_t row) {
  if (!is_good || row >= pattern.block_rows) return {0, 0};
  const int32_t begin = pattern.index.row_ptr[row];
  return {begin, pattern.index.row_ptr[row + 1] - begin};
}
#endif

}  // namespace sparsek::cuda
