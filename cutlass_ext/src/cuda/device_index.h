// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/device_array.h"
#include "plan/bsr_index.h"

namespace sparsek::cuda {

// The index of a BSR matrix in device memory, checked. The host never sees it.
struct DeviceIndex : BsrShape {
  DeviceArray<int32_t> row_ptr;  // (block_rows + 1)
  DeviceArray<int32_t> col_idx;  // (nnzb), strictly increasing within a block row
  int32_t longest_row = 0;       // blocks of the block row that has most
};

// Copies the index out of device arrays and checks it in the same pass, in the default stream, and waits for it.
// Throws the same faults as make_bsr_index. Pointers are assumed to be pointers to memory of the current device.
DeviceIndex make_device_index(const sparsek_bsr& a);

}  // namespace sparsek::cuda
