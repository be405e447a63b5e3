// SPDX-License-Identifier: Apache-2.0
// A product by kernel family "dmma_packed", and how a warp writes a row of its C; and the kernel behind it where CTAs
// share tiles.
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/dmma.cuh"
#include "cuda/pack_fp64.h"

namespace sparsek::cuda {
namespace dmma_packed_kernel {

using namespace dmma_kernel;

using F = Format<double>;

struct Params {
  CUtensorMap map_b;  // (16, K, N / 16) where N is a multiple of 16, else (N, K, 1)
  LaunchArgs args;
  RowChunks rows;
  StripSizes sizes;
  StripMemory strips;
  double* sums;           // of the parts of tiles: (parts, tiles, 64 rows, TileN)
  int groups, panels;     // of 64 rows, of columns
  int parts;              // of each tile, along K
  int tiles;              // or parts of them, if there is more than one of each
  int chunks_of_box;      // of B
  bool chunks_are_outer;  // map_b has a dimension for chunks
};

// The sum of a row of C in a lane's column, from the blocks that exist alone. For whole warps; `inside`: the lane has a
// column.
__device__ inline double compute_again(const Params& p, int64_t row, int64_t col, bool inside) {
  constexpr int kAtOnce = 16;      // entries whose columns are a step: their loads are under way together
  constexpr int kMostBetween = 4;  // steps from a look whether all lanes have NaN to the next one
  const LaunchArgs& args = p.args;
  const int64_t block_row = row / args.block_m, in_block = row % args.block_m;
  const int begin = __ldg(p.rows.row_ptr + block_row), end = __ldg(p.rows.row_ptr + block_row + 1);
  const bool in_place = __ldg(&p.rows.chunks->entry_end) >= 0;
  const auto* const b = static_cast<const double*>(args.b) + (inside ? col : 0);
  double sum = 0;
  // Where NaN or Inf are everywhere, the first steps make all sums NaN, which no later one changes.
  int between = 1, left = 1;
#pragma unroll 1
  for (int first = begin; first < end; first += kAtOnce) {
    int64_t k[kAtOnce];
    const double* a[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int e = min(first + i, end - 1);
      k[i] = __ldg(args.entry_k + e);
      const int64_t block = in_place ? e : __ldg(args.entry_block + e);
      a[i] = static_cast<const double*>(args.values) + (block * args.block_m + in_block) * args.block_k;
    }
#pragma unroll 1
    for (int j = 0; j < args.block_k; ++j) {
      double of_a[kAtOnce], of_b[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        of_a[i] = __ldg(a[i] + j);
        of_b[i] = __ldg(b + min(k[i] + j, args.cols - 1) * args.ldb);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i < end && k[i] + j < args.cols) sum = fma(of_a[i], of_b[i], sum);
      }
      if (--left == 0) {
        if (__all_sync(0xffffffffu, isnan(sum) || !inside)) return sum;
        left = between = min(2 * between, kMostBetween);
      }
    }
  }
  return sum;
}

// 32 sums of a row of C, a lane each, to C. Whether one was NaN, and was computed again.
__device__ inline bool store_row(const Params& p, int64_t row, int64_t col, double sum, bool plain, double alpha) {
  const LaunchArgs& args = p.args;
  const bool inside = col < args.n, again = __any_sync(0xffffffffu, inside && isnan(sum));
  if (again) {
    const double other = compute_again(p, row, col, inside);
    if (isnan(sum)) sum = other;
  }
  if (!inside) return again;
  if (plain) {
    __stcs(static_cast<double*>(args.c) + row * args.ldc + col, alpha * sum);
  } else {
    write_element(args, row, col, sum);
  }
  return again;
}

// Loads the kernel of join. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_join();
// Adds the sums of the parts of tiles up, always in the order of the parts, and writes C. Launch it directly behind the
// kernel that leaves them.
cudaError_t join(const Params& p, int tile_n);

}  // namespace dmma_packed_kernel
}  // namespace sparsek::cuda
