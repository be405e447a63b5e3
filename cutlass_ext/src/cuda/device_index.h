// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/plan_memory.h"
#include "plan/bsr_index.h"

namespace sparsek::cuda {

// The index of a BSR matrix in device memory, checked. The host never sees it.
struct DeviceIndex : BsrShape {
  PoolArray<int32_t> row_ptr;  // (block_rows + 1)
  PoolArray<int32_t> col_idx;  // (nnzb), strictly increasing within a block row
  int32_t longest_row = 0;     // blocks of the block row that has most
};

// Copies the index out of device arrays and checks it in the same pass, behind what the default stream was given
// before, and waits for it. Throws the same faults as make_bsr_index. Pointers are assumed to be pointers to memory of
// the current device. uses: of the index, as in PlanMemory::allocate.
DeviceIndex make_device_index(const sparsek_bsr& a, PlanMemory& memory, const StreamUses& uses);

}  // namespace sparsek::cuda
