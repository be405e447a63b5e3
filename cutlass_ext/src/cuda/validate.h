// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sparsek.h"

namespace sparsek::cuda {

// Checks row_ptr and col_idx in device memory with a kernel and waits for it. Throws the same faults as
// make_bsr_index. Sizes and enumerations were checked before.
void validate_device_index(const sparsek_bsr& a);

}  // namespace sparsek::cuda
