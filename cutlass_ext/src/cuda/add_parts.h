// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch_args.h"

namespace sparsek::cuda {

// Loads the kernel. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_add_parts();

// Computes the elements of C in split tiles: adds up the sums of each tile's parts, in the order of the parts, and
// applies the epilogue. Launch it directly after the kernel that wrote args.parts. tiles: (count), in device memory;
// tile_n: the columns of a tile.
cudaError_t add_parts(const LaunchArgs& args, const SplitTile* tiles, int32_t count, int32_t tile_n);

}  // namespace sparsek::cuda
