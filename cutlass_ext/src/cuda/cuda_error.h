// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace sparsek::cuda {

// Throws Error where a CUDA call failed: SPARSEK_OUT_OF_MEMORY for device memory, else SPARSEK_CUDA_ERROR with the
// call, the name and the text of the error.
void check(cudaError_t error, const char* call);

}  // namespace sparsek::cuda
