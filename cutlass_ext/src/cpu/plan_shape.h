// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/plan.h"

namespace sparsek::cpu {

// The tiles and workers for a pattern and n columns: tiles as large as a worker's scratch memory, smaller where there
// would be too few of them, and no more workers than the work keeps busy.
PlanShape choose_shape(const BsrShape& matrix, int64_t n, int threads);

}  // namespace sparsek::cpu
