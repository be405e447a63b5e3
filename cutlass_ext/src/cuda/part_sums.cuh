// SPDX-License-Identifier: Apache-2.0
// How a kernel whose sums lie as mma_sync.cuh says leaves those of a part of a tile, instead of an epilogue.
#pragma once

#include "cuda/exact_rows.cuh"
#include "cuda/kernel.h"

namespace sparsek::cuda {

// A slab's sums of a part, of lane 0 in the first group of columns; the next group of columns is 32 on.
__device__ inline float4* slab_of_part(const PartSums& parts, int part, int slab) {
  return parts.sums + (int64_t(part) * parts.slabs + slab) * parts.groups * 32;
}

// The warp's sums, columns first_col on; `to` is the lane's place.
template <int Groups>
__device__ void store_part(const LaunchArgs& args, const float (&acc)[Groups][4], int64_t first_col, float4* to) {
  const int columns = int(min(int64_t(Groups * 8), args.n - first_col));
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    if (g * 8 < columns) to[g * 32] = {acc[g][0], acc[g][1], acc[g][2], acc[g][3]};
  }
}

// The same, computed again from just the blocks that are there.
template <class Element>
__device__ void store_part_exactly(const LaunchArgs& args, const WorkTile& tile, const int (&slot)[2],
                                   const uint32_t (&row)[2], int64_t first_col, int lane, float4* to) {
  const int64_t end_col = first_col + args.parts.groups * 8;
  sum_exactly<Element>(args, tile, slot, row, first_col, end_col, lane, [&](int h, int col, float x, float y) {
    reinterpret_cast<float2*>(to + col / 8 * 32)[h] = {x, y};
  });
}

// threadIdx.x, read where it is asked for: the compiler makes nothing of it ahead, which would take registers through
// the mainloop.
__device__ inline int read_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Leaves the sums of part `part`, whose tile, slots, rows and columns are as for store_exactly. Slab s of the tile is
// that of warp s behind first_thread.
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
