// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cost_model.h"

namespace sparsek::cuda {

// Microseconds of a kernel whose CTAs have a block row each.
double predict_row_mma(const KernelDesc& kernel, const Work& work);

}  // namespace sparsek::cuda
