// SPDX-License-Identifier: Apache-2.0
// Kernel family "few_columns": blocks of at most 32 x 32, and so few columns that reading A takes the time. A warp
// reads the blocks of a chunk (plan/row_chunks.h) one after the other, whatever the length of rows.
//
//   A   values (nnzb, bm, bk):(bm bk, bk, 1), to shared memory by bulk copies: each warp has a ring of its own
//   B   (K, N):(ldb, 1), read through L1 when a block has arrived
//   C   (M, N):(ldc, 1), from registers
#pragma once

#include "cuda/few_columns_bundles.cuh"
#include "cuda/few_columns_stream.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {

constexpr int kFewColumnsThreads = 32 * kFewColumnsWarps;

// CTAs of an SM, as many as there are registers for.
template <class Element, int kTileM, int kTileN, int kDepth>
constexpr int kFewColumnsCtas = sizeof(Element) == 8 && kTileM * kTileN * kDepth >= 48 ? 3 : 4;

namespace few_columns {

// The turns of a CTA: the warps have a chunk each, and one panel of columns.
template <class Element, int kTileM, int kTileN, int kDepth>
__global__ void __launch_bounds__(kFewColumnsThreads, (kFewColumnsCtas<Element, kTileM, kTileN, kDepth>))
    kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  extern __shared__ __align__(16) char shared[];
  const int turns = ctas_of(rows.count, rows.lanes.panels);
#pragma unroll 1
  for (int turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const int warp = threadIdx.x / 32, panel = turn % rows.lanes.panels;
    const int at = turn / rows.lanes.panels * kFewColumnsWarps + warp;
    if (at >= rows.count) continue;
    char* const own = shared + warp * rows.lanes.shared_bytes;
    if constexpr (kTileN == 1) {
      stream_chunk<Element, kTileM, kDepth>(args, rows, at, panel, own);
    } else {
      multiply_chunk<Element, kTileM, kTileN, kDepth>(args, rows, at, panel, own);
    }
  }
}

using Kernel = void (*)(LaunchArgs, RowChunks);

template <class Element, int kTileN>
Kernel kernel_of(int tile_m, int depth) {
  switch (tile_m * 10 + depth) {
    case 11:
      return &kernel<Element, 1, kTileN, 1>;
    case 12:
      return &kernel<Element, 1, kTileN, 2>;
    case 22:
      return &kernel<Element, 2, kTileN, 2>;
    case 42:
      return &kernel<Element, 4, kTileN, 2>;
    case 13:
      return &kernel<Element, 1, kTileN, 3>;
    case 33:
      return &kernel<Element, 3, kTileN, 3>;
    case 43:
      return &kernel<Element, 4, kTileN, 3>;
    case 14:
      return &kernel<Element, 1, kTileN, 4>;
    case 24:
      return &kernel<Element, 2, kTileN, 4>;
    default:
      return &kernel<Element, 4, kTileN, 4>;
  }
}

template <class Element>
Kernel kernel_of(const LaneLayout& lanes) {
  return lanes.tile_n == 1 ? kernel_of<Element, 1>(lanes.tile_m, lanes.depth)
                           : kernel_of<Element, 4>(lanes.tile_m, lanes.depth);
}

}  // namespace few_columns

template <class Config>
struct FewColumnsKernel {
  using Element = typename Config::Element;

  static cudaError_t prepare() {
    for (const int tile_n : {1, 4}) {
      for (const BlockTile& tile : kBlockTiles) {
        LaneLayout lanes = {};
        lanes.tile_m = tile.tile_m;
        lanes.tile_n = tile_n;
        lanes.depth = tile.depth;
        const cudaError_t status =
            cudaFuncSetAttribute(few_columns::kernel_of<Element>(lanes), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kFewColumnsWarps * kMostSharedBytesOfWarp);
        if (status != cudaSuccess) return status;
      }
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const RowChunks& rows = *args.rows_in_chunks;
    const int turns = ctas_of(rows.count, rows.lanes.panels),
              workers = args.workers > 0 ? min(args.workers, turns) : turns;
    return launch_kernel(few_columns::kernel_of<Element>(rows.lanes), workers, kFewColumnsThreads,
                         kFewColumnsWarps * rows.lanes.shared_bytes, args.stream, {}, args, rows);
  }
};

template <class Config>
constexpr KernelOps few_columns_ops() {
  using K = FewColumnsKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/1,
                   /*tensor_cores=*/false,
                   /*tma_b=*/false,
                   /*any_rows=*/false,
                   /*align_values=*/sizeof(typename Config::Element),
                   /*any_epilogue=*/true};
  ops.takes_chunks = true;
  ops.most_block = kMostBlock;
  return ops;
}

}  // namespace sparsek::cuda
