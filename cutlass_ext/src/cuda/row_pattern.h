// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek::cuda {

// The pattern of a matrix in device memory.
struct RowPattern {
  int32_t block_rows, block_cols;
  const int32_t* row_ptr;  // (block_rows + 1)
  const int32_t* col_idx;  // strictly increasing within a block row
};

}  // namespace sparsek::cuda
