// SPDX-License-Identifier: Apache-2.0
// Kernel family "row_window": square blocks of one small size, fp32 and fp64, of patterns whose neighbouring rows have
// columns in common. Its plans have chunks of consecutive block rows (plan/row_chunks.h), which a CTA takes one after
// the other, for a panel of columns each.
//
//   A   values (nnzb, bm, bk):(bm bk, bk, 1), to shared memory by bulk copies, once for all warps of a CTA
//   B   (K, N):(ldb, 1), read through L1
//   C   (M, N):(ldc, 1), from registers
#pragma once

#include "cuda/dependent_launch.cuh"
#include "cuda/few_columns_window.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {

template <class Tile, bool kPlain>
__global__ void __launch_bounds__(32 * (Tile::kWarps + 1), 1)
    row_window_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  extern __shared__ __align__(16) char shared[];
  const few_columns::Window window(rows.lanes, shared);
  if (threadIdx.x < 32) window.make_barriers(Tile::kWarps);
  __syncthreads();
  start_dependent();
  if (threadIdx.x / 32 == Tile::kWarps) {
    few_columns::fill_window<Tile>(args, rows, window, shared);
  } else {
    few_columns::read_window<Tile, kPlain>(args, rows, window);
  }
}

template <class Config>
struct RowWindowKernel {
  using Element = typename Config::Element;
  using Kernel = void (*)(LaunchArgs, RowChunks);
  static constexpr int kPiece = kPieceBytes / int(sizeof(Element)), kBlock = Config::kBlockM;
  template <int kPieces>
  using Tile = few_columns::WindowTile<Element, kBlock, step_of_window(kBlock), kPieces * kPiece,
                                       warps_of_window(kBlock, kPieces, sizeof(Element))>;

  template <int kPieces>
  static Kernel kernel_of(bool plain) {
    return plain ? &row_window_kernel<Tile<kPieces>, true> : &row_window_kernel<Tile<kPieces>, false>;
  }
  static constexpr int kMostPieces = most_pieces(kBlock);
  static Kernel kernel_of(int pieces, bool plain) {
    return pieces == 1 ? kernel_of<1>(plain) : kernel_of<kMostPieces>(plain);
  }

  static cudaError_t prepare() {
    for (int pieces = 1; pieces <= kMostPieces; ++pieces) {
      for (const bool plain : {false, true}) {
        const cudaError_t status = cudaFuncSetAttribute(
            kernel_of(pieces, plain), cudaFuncAttributeMaxDynamicSharedMemorySize, kMostWindowBytes + 1024);
        if (status != cudaSuccess) return status;
      }
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const LaneLayout& lanes = args.rows_in_chunks->lanes;
    const bool whole = args.n % kPiece == 0 && args.ldb % kPiece == 0 && args.cols % kBlock == 0;
    const bool plain = whole && reinterpret_cast<uintptr_t>(args.b) % kPieceBytes == 0;
    const int pieces = lanes.tile_n / kPiece, turns = ctas_of(args.rows_in_chunks->count, lanes, lanes.panels);
    const int warps = warps_of_window(kBlock, pieces, sizeof(Element));
    // A CTA counts the blocks of all its turns in 32 bits.
    constexpr int64_t kMostBlocks = int64_t{1} << 30;
    const int64_t least = (args.nnzb * lanes.panels + kMostBlocks - 1) / kMostBlocks;
    const int ctas = int(min(int64_t(turns), max(int64_t(args.workers), least)));
    return launch_kernel(kernel_of(pieces, plain), ctas, 32 * (warps + 1), lanes.shared_bytes, args.stream, {true},
                         args, *args.rows_in_chunks);
  }
};

template <class Config>
constexpr KernelOps row_window_ops() {
  using K = RowWindowKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/1,
                   /*tensor_cores=*/false,
                   /*tma_b=*/false,
                   /*any_rows=*/false,
                   /*align_values=*/sizeof(typename Config::Element),
                   /*any_epilogue=*/true};
  ops.takes_chunks = true;
  ops.most_block = Config::kBlockM;
  return ops;
}

}  // namespace sparsek::cuda
