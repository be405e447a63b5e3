// SPDX-License-Identifier: Apache-2.0
// Kernel family "simt": every block shape, type, pitch, alignment and epilogue, on the ordinary cores. With it the GPU
// serves every matrix; it is not chosen where a tensor-core kernel serves.
//
//   A   values (nnzb, bm, bk):(bm bk, bk, 1), read from global memory
//   B   (K, N):(ldb, 1), read from global memory
//   C   (M, N):(ldc, 1), from registers
#pragma once

#include "abi/sum_type.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/epilogue.cuh"
#include "cuda/epilogue_fp64.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/operand_types.h"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"

namespace sparsek::cuda {

constexpr int kSimtColumns = 64;   // columns of a tile; one thread each
constexpr int kSimtRowGroups = 4;  // groups of threads, each with rows of its own
constexpr int kSimtRowsPerThread = 8;
constexpr int kSimtThreads = kSimtColumns * kSimtRowGroups;
constexpr int kSimtCtasPerSm = 2;

// Each CTA has one tile: the device begins the next CTA when one has ended. With a limit on the CTAs each has several.
// A tile is a part of one block row (or all of it), tile_m rows high, and 64 columns wide.
template <class Element>
__global__ void __launch_bounds__(kSimtThreads, kSimtCtasPerSm) simt_kernel(const LaunchArgs args, int tile_m) {
  const auto* values = static_cast<const TypeOfA<Element>*>(args.values);
  const auto* b = static_cast<const TypeOfB<Element>*>(args.b);
  const int column_in_tile = threadIdx.x % kSimtColumns;
  const int row_group = threadIdx.x / kSimtColumns;
  wait_for_previous_launch();

  for (int t = blockIdx.x; t < args.tiles_count; t += gridDim.x) {
    const WorkTile tile = args.tiles[t];
    const int64_t n = int64_t(tile.n_tile) * kSimtColumns + column_in_tile;
    const int64_t first_row = int64_t(tile.m_tile) * tile_m;
    const int64_t row_in_block = first_row % args.block_m;
    if (n >= args.n) continue;

    for (int m0 = row_group * kSimtRowsPerThread; m0 < tile_m; m0 += kSimtRowGroups * kSimtRowsPerThread) {
      Sum<Element> sum[kSimtRowsPerThread] = {};
      for (int e = tile.entry_begin; e < tile.entry_begin + tile.entry_count; ++e) {
        const auto* block = values + (int64_t(args.entry_block[e]) * args.block_m + row_in_block + m0) * args.block_k;
        const int64_t k0 = args.entry_k[e];
        const int k_count = int(min(int64_t(args.block_k), args.cols - k0));  // the last block may extend beyond K
        for (int k = 0; k < k_count; ++k) {
          const auto b_value = Sum<Element>(b[(k0 + k) * args.ldb + n]);
#pragma unroll
          for (int i = 0; i < kSimtRowsPerThread; ++i) {
            if (m0 + i < tile_m) sum[i] += Sum<Element>(block[int64_t(i) * args.block_k + k]) * b_value;
          }
        }
      }
#pragma unroll
      for (int i = 0; i < kSimtRowsPerThread; ++i) {
        const int64_t row = first_row + m0 + i;
        if (m0 + i < tile_m && row < args.rows) write_element(args, row, n, sum[i]);
      }
    }
  }
}

template <class Config>
struct SimtKernel {
  static_assert(Config::kTileN == kSimtColumns);
  static cudaError_t prepare() { return cudaSuccess; }
  static cudaError_t launch(const LaunchArgs& args) {
    return launch_kernel(simt_kernel<typename Config::Element>, args.workers, kSimtThreads, 0, args.stream,
                         {/*overlap=*/true}, args, args.block_m);
  }
};

template <class Config>
constexpr KernelOps simt_ops() {
  using K = SimtKernel<Config>;
  return {&K::prepare,
          &K::launch,
          kSimtCtasPerSm,
          /*tensor_cores=*/false,
          /*tma_b=*/false,
          /*any_rows=*/false,
          /*align_values=*/sizeof(TypeOfA<typename Config::Element>),
          /*any_epilogue=*/true,
          /*most_cluster=*/1,
          /*may_split=*/false,
          /*takes_tiles=*/false,
          /*most_rounds=*/INT32_MAX};
}

}  // namespace sparsek::cuda
