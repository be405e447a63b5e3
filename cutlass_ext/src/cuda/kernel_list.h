// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "abi/backend.h"
#include "cuda/kernel.h"

namespace sparsek::cuda {

// The kernel of that name, or the first of the list that serves the case and is no baseline; and why. Throws
// SPARSEK_NO_SUCH_KERNEL or SPARSEK_UNSUPPORTED_BLOCK where there is none. index: null where it is not on the host; the
// choice then knows nothing of the pattern.
const KernelDesc* choose_kernel(const BsrShape& matrix, const BsrIndex* index, sparsek_dtype dtype,
                                const PlanOptions& options, std::string& reason);

}  // namespace sparsek::cuda
