// SPDX-License-Identifier: Apache-2.0
// Stores the sums of a part of a tile in the workspace, instead of an epilogue, for kernels that hold their sums in the
// layout of D in mma_sync.cuh. The layout of the workspace: PartSums in cuda/kernel.h.
#pragma once

#include "cuda/exact_rows.cuh"
#include "cuda/launch_args.h"

namespace sparsek::cuda {

// The address of a slab's sums of a part, for lane 0 and the first group of columns. The next group is 32 elements on.
__device__ inline float4* slab_of_part(const PartSums& parts, int part, int slab) {
  return parts.sums + (int64_t(part) * parts.slabs + slab) * parts.groups * 32;
}

// Stores the warp's sums of the columns from first_col on. to: the lane's address in the slab.
template <int Groups>
__device__ void store_part(const LaunchArgs& args, const float (&acc)[Groups][4], int64_t first_col, float4* to) {
  const int columns = int(min(int64_t(Groups * 8), args.n - first_col));
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    if (g * 8 < columns) to[g * 32] = {acc[g][0], acc[g][1], acc[g][2], acc[g][3]};
  }
}

// Like store_part, with the sums computed again from only the blocks that exist.
template <class Element>
__device__ void store_part_exactly(const LaunchArgs& args, const WorkTile& tile, const int (&slot)[2],
                                   const uint32_t (&row)[2], int64_t first_col, int lane, float4* to) {
  const int64_t end_col = first_col + args.parts.groups * 8;
  sum_exactly<Element>(args, tile, slot, row, first_col, end_col, lane, [&](int h, int col, float x, float y) {
    reinterpret_cast<float2*>(to + col / 8 * 32)[h] = {x, y};
  });
}

// threadIdx.x, read at the place of the call, so that the compiler computes nothing from it earlier, which would occupy
// registers during the mainloop.
__device__ inline int read_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Stores the sums of part `part`. tile, slot, row and first_col are as for store_exactly. Slab s of the tile belongs to
// warp s, counted from first_thread on.
template <class Element, int Groups>
__device__ void leave_part(const LaunchArgs& args, const float (&acc)[Groups][4], const WorkTile& tile, int part,
                           const int (&slot)[2], const uint32_t (&row)[2], int64_t first_col, int first_thread) {
  const int thread = read_thread() - first_thread, lane = thread % 32;
  float4* const to = slab_of_part(args.parts, part, thread / 32) + lane;
  if (any_nan(args, acc, row, first_col, lane)) {
    store_part_exactly<Element>(args, tile, slot, row, first_col, lane, to);
  } else {
    store_part(args, acc, first_col, to);
  }
}

}  // namespace sparsek::cuda
