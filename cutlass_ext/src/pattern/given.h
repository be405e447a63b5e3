// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/error.h"
#include "abi/require.h"
#include "pattern/job.h"

namespace sparsek::pattern {

// A matrix as the caller has it; pointers are checked, and the index is not.
inline Given read_given(const sparsek_bsr& bsr) {
  if ((bsr.flags & ~(SPARSEK_BSR_SORT | SPARSEK_BSR_BOUND)) != 0) {
    fail(SPARSEK_BAD_ARGUMENT, "bsr->flags = %d has bits other than SPARSEK_BSR_SORT (1) and SPARSEK_BSR_BOUND (4)",
         bsr.flags);
  }
  require_bsr(bsr);
  const auto array = [&](const void* data) { return IndexArray{data, bsr.index_type}; };
  return {make_bsr_shape(bsr),
          array(bsr.row_ptr),
          array(bsr.col_idx),
          array(bsr.block_idx),
          bsr.values,
          (bsr.flags & SPARSEK_BSR_BOUND) != 0,
          (bsr.flags & SPARSEK_BSR_SORT) != 0};
}

}  // namespace sparsek::pattern
