// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cuda/cuda_matrix.h"
#include "tune/rehearsal.h"

namespace sparsek::cuda {

// The current device must be the matrix's. Takes device memory: of B, C, the bias, and twice L2's size. Throws
// SPARSEK_OUT_OF_MEMORY.
std::unique_ptr<tune::Rehearsal> make_rehearsal(CudaMatrix& matrix, const PlanOptions& options, size_t l2_bytes);

}  // namespace sparsek::cuda
