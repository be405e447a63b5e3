// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <variant>

#include "cuda/device_index.h"

namespace sparsek::cuda {

// An index where the caller's was.
using AnyIndex = std::variant<BsrIndex, DeviceIndex>;

// Blocks of the block row that has most.
int64_t longest_row(const AnyIndex& index);

// The arrays of an index in device memory: its own, which it must outlive them for, or copies of those on the host.
class IndexArrays {
 public:
  // uses: of the copies, as in PlanMemory::allocate.
  IndexArrays(const AnyIndex& index, PlanMemory& memory, const StreamUses& uses);

  const int32_t* row_ptr() const { return row_ptr_; }  // (block_rows + 1)
  const int32_t* col_idx() const { return col_idx_; }  // (nnzb)
  size_t bytes() const { return copies_[0].bytes() + copies_[1].bytes(); }

 private:
  PoolArray<int32_t> copies_[2];
  const int32_t *row_ptr_, *col_idx_;
};

}  // namespace sparsek::cuda
