// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"

namespace sparsek::cuda {

// The kernels that a product may be computed by, ours but for the baselines and, where they are wanted,
// those of NVIDIA's libraries, with what
// stands against them and how long the cost model thinks that they take; in the order of priority.
std::vector<tune::Candidate> list_candidates(const CudaMatrix& matrix, const PlanOptions& options, int sm_count,
                                             bool libraries);

}  // namespace sparsek::cuda
