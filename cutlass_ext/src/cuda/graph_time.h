// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/backend.h"

namespace sparsek::cuda {

// Times replays of one CUDA graph of the products plans[i], args[i], `count` of them, as sparsek.h says of graph_time.
// The current device must be that of the plans.
void graph_time(PlanState* const* plans, const MultiplyArgs* args, int count, int warmup, int repeats, double* seconds);

}  // namespace sparsek::cuda
