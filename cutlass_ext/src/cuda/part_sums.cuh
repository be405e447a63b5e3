// SPDX-License-Identifier: Apache-2.0
// Stores the sums of a part of a tile in the workspace, instead of an epilogue, for kernels that hold their sums in the
// layout of D in mma_sync.cuh. The layout of the workspace: PartSums in cuda/launch_args.h.
#pragma once

#include "cuda/launch_args.h"
#include "cuda/read_here.cuh"

namespace sparsek::cuda {

// The address of a slab's sums of a part, for lane 0 and the first group of columns. The next group is 32 elements on.
__device__ inline float4* slab_of_part(const PartSums& parts, int part, int slab) {
  return parts.sums + (int64_t(part) * parts.slabs + slab) * parts.groups * 32;
}

// Stores the warp's sums of the columns from first_col on. to: the lane's address in the slab. leave_out: bit i: the
// columns from 64 i on are not stored.
template <int Groups>
__device__ void store_part(const LaunchArgs& args, const float (&acc)[Groups][4], int64_t first_col, float4* to,
                           uint32_t leave_out = 0) {
  const int columns = int(min(int64_t(Groups * 8), args.n - first_col));
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    if (g * 8 < columns && (leave_out >> g / 8 & 1) == 0) to[g * 32] = {acc[g][0], acc[g][1], acc[g][2], acc[g][3]};
  }
}

// Stores the sums of part `part`, whose first column of C is first_col. Slab s of the tile belongs to warp s, counted
// from first_thread on. leave_out: as in store_part.
template <int Groups>
__device__ void leave_part(const LaunchArgs& args, const float (&acc)[Groups][4], int part, int64_t first_col,
                           int first_thread, uint32_t leave_out) {
  const int thread = read_thread() - first_thread;
  store_part(args, acc, first_col, slab_of_part(args.parts, part, thread / 32) + thread % 32, leave_out);
}

}  // namespace sparsek::cuda
