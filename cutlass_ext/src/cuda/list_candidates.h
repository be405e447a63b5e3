// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"

namespace sparsek::cuda {

// The kernels that may compute a product, in the order of priority: ours without the baselines and, where requested,
// those of NVIDIA's libraries. Each has the reason why it does not serve, or its predicted time.
std::vector<tune::Candidate> list_candidates(const CudaMatrix& matrix, const PlanOptions& options, int sm_count,
                                             bool libraries);

}  // namespace sparsek::cuda
