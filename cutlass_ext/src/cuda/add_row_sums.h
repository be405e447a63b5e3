// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch_args.h"

namespace sparsek::cuda {

// Loads the kernel. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_add_row_sums(bool fp64);

// The block rows that lie in several chunks: adds up the sums of each, always in the same order, and applies the
// epilogue. Launch it directly after the kernel that wrote args.rows_in_chunks->sums. fp64: the type of A, B and C.
cudaError_t add_row_sums(const LaunchArgs& args, bool fp64);

}  // namespace sparsek::cuda
