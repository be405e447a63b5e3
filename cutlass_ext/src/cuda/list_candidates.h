// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "abi/backend.h"

namespace sparsek::cuda {

// The kernels that a product may be computed by, ours but for the baselines, with what stands against them and how long
// the cost model thinks that they take; in the order of priority.
std::vector<tune::Candidate> list_candidates(const MatrixState& matrix, const PlanOptions& options, int sm_count);

}  // namespace sparsek::cuda
