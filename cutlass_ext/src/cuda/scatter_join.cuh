// SPDX-License-Identifier: Apache-2.0
// Where CTAs of kernel families "wgmma_scatter" and "planes_packed" share a tile, each has a part of its stages and
// leaves its sums in the workspace. Another kernel adds these up, always in the order of the parts, and writes C.
//
//   sums  (parts, tiles, slabs of 16 rows, groups of 8 columns, 32 lanes): four sums of a lane together, in the
//         layout of D in mma_sync.cuh. Groups beyond C are left out.
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/nan_sums.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/scatter_shared.cuh"
#include "cuda/tma_store.cuh"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

// Where a slab's begin. tile: counted through all parts; groups: of a tile's columns.
__host__ __device__ constexpr int64_t first_sum(int64_t tile, int slab, int groups) {
  return (tile * kSlabs + slab) * groups * 32;
}

// Of all parts.
constexpr int64_t bytes_of_sums(int64_t tiles, int tile_n) {
  return first_sum(tiles, 0, tile_n / 8) * int64_t{sizeof(float4)};
}

// Leaves a warp's sums of its 16 rows, from first_row and first_col on, in the CTA's part. Returns not 0
// where some of the lane's are NaN, of groups of columns in C.
template <int Groups>
__device__ uint32_t leave_sums(const LaunchArgs& args, float4* sums, const float (&acc)[Groups][4], uint32_t first_row,
                               uint32_t first_col, int lane) {
  const int slab = int(first_row) % ring_kernel::kTileM / kStoreRows;
  store_part(args, acc, first_col, sums + first_sum(blockIdx.x, slab, Groups) + lane);
  const auto columns = int(min(int64_t(Groups * 8), args.n - first_col));
  uint32_t found = 0;
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    if (g * 8 < columns) found |= nan_mask(acc[g][0], acc[g][1]) | nan_mask(acc[g][2], acc[g][3]);
  }
  return found;
}

struct Joined {
  LaunchArgs args;
  RowChunks rows;
  const float4* sums;
  int32_t row_groups, tiles, parts;
  int32_t groups;  // of 8 columns of a tile
};

// Loads the kernel that adds them up. Call it before the first launch on a device, since a capture does not allow
// loading.
template <class Element>
cudaError_t prepare_join();

// Adds them up and writes C. Of float, sums that are not finite are computed again; those of 16-bit
// types are right, also where they are Inf and NaN. Launch it directly after the kernel that leaves them.
template <class Element>
cudaError_t join(const Joined& p);

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
