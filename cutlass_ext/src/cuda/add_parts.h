// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/kernel.h"

namespace sparsek::cuda {

// Before the first launch on a device: loads the kernel, which a capture would not allow.
cudaError_t prepare_add_parts();

// The elements of C in tiles that were split: adds up the sums of their parts, each tile's in their order, and does
// what comes behind the sum. To be launched right behind the kernel that left them in args.parts. tiles (count) is in
// device memory, tile_n the columns of one.
cudaError_t add_parts(const LaunchArgs& args, const SplitTile* tiles, int32_t count, int32_t tile_n);

}  // namespace sparsek::cuda
