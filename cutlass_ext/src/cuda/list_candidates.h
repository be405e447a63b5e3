// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"
#include "cuda/device_rates.h"

namespace sparsek::cuda {

// The kernels that a product may be computed by: ours but for the baselines, and those of NVIDIA's libraries where
// `libraries` is set. Each has the reason why it does not serve, or the time that the cost model predicts. In the order
// of priority. matrix: op(A).
std::vector<tune::Candidate> list_candidates(const CudaMatrix& matrix, const PlanOptions& options,
                                             const DeviceRates& device, bool libraries);

}  // namespace sparsek::cuda
