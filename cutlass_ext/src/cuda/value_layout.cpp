// SPDX-License-Identifier: Apache-2.0
#include "cuda/value_layout.h"

#include "cuda/stage_tiles.h"

namespace sparsek::cuda {

LaunchArgs sizes_of(const BsrShape& matrix, int64_t n, int32_t workers, int32_t cluster) {
  LaunchArgs args = {};
  args.rows = matrix.rows;
  args.cols = matrix.cols;
  args.n = n;
  args.block_m = matrix.block_m;
  args.block_k = matrix.block_k;
  args.nnzb = matrix.nnzb;
  args.workers = workers;
  args.cluster = cluster;
  return args;
}

LayoutKind layout_kind(const KernelDesc& kernel, const BsrShape& matrix) {
  if (scatters(kernel)) {
    const ListSizes sizes = list_sizes(matrix.rows, matrix.cols, matrix.nnzb, matrix.block_m, matrix.block_k);
    return keeps_stages(sizes, kernel.tile_n) ? LayoutKind::kStages : LayoutKind::kListValues;
  }
  if (packs_planes(kernel)) return LayoutKind::kPlaneStrips;
  return packs_fp64(kernel) ? LayoutKind::kStrips : LayoutKind::kOfPlan;
}

size_t kept_bytes(const KernelDesc& kernel, const LaunchArgs& sizes) {
  if (kernel.ops->layout_bytes == nullptr || sizes.nnzb == 0 || sizes.n == 0) return 0;
  const size_t bytes = kernel.ops->layout_bytes(sizes);
  return bytes <= kMostKeptBytes ? bytes : 0;
}

}  // namespace sparsek::cuda
