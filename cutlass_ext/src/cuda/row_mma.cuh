// SPDX-License-Identifier: Apache-2.0
// Kernel family "row_mma": blocks of at most 32 x 32 of every size, 16-bit types, tens of columns, and matrices so
// small that latency takes the time. A CTA computes one block row by 64 columns of C. Its warps share the blocks of the
// row, so that all loads of a short row are in flight at once, and their sums are added up in shared memory.
//
// The blocks of a row are one line of columns, whatever their width: a step is 32 of these, or 16 where blocks are
// higher than 16. A warp multiplies the transposed, C^T = B^T A^T, by m16n8k16: lane (g, t) has eight or four
// consecutive columns of the line, of rows g, g + 8 and so on of A, and the rows of B that they meet, of which it reads
// eight columns of C.
//
//   A   values (nnzb, bm, bk):(bm bk, bk, 1), to registers, in pieces of consecutive elements that are aligned
//   B   (K, N):(ldb, 1), to registers; address and pitch are multiples of 16 bytes
//   C   (M, N):(ldc, 1), by way of shared memory; any rows, M, N, pitch, alignment and epilogue
//
// No absent block is multiplied, so Inf and NaN in rows of B that a block row has no block for never reach C.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/dependent_launch.cuh"
#include "cuda/few_columns_store.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/mma_sync.cuh"
#include "cuda/row_mma_sizes.h"

namespace sparsek::cuda {
namespace row_mma {

constexpr int kTileN = 64, kOfLane = 8;  // columns of C, and of those that a lane reads
constexpr int kPitch = kTileN + 4;       // of the sums in shared memory
constexpr int kStoreN = 4;               // columns of C that a thread writes at once

// By which registers leave room for warps_of_sm.
constexpr int most_threads(int row_tiles) { return 32 * (row_tiles == 1 ? warps_of_sm(row_tiles) : kMostWarps); }
constexpr int sum_bytes(int row_tiles, int warps) { return warps * row_tiles * 8 * kPitch * int(sizeof(float)); }

// Two consecutive elements each.
template <int kElements>
struct Words {
  uint32_t of[kElements / 2];
};

// kCount elements, aligned to as many, to the words from element `at` on.
template <int kCount, int kElements>
__device__ inline void load_piece(const uint16_t* from, int at, Words<kElements>& to) {
  if constexpr (kCount == 8) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    to = {v.x, v.y, v.z, v.w};
  } else if constexpr (kCount == 4) {
    const uint2 v = __ldg(reinterpret_cast<const uint2*>(from));
    to.of[at / 2] = v.x;
    to.of[at / 2 + 1] = v.y;
  } else if constexpr (kCount == 2) {
    to.of[at / 2] = __ldg(reinterpret_cast<const uint32_t*>(from));
  } else {
    to.of[at / 2] |= uint32_t(__ldg(from)) << at % 2 * 16;
  }
}

// Eight columns of a row of B, of which there are `columns`.
__device__ inline Words<kOfLane> load_columns(const uint16_t* from, int columns) {
  Words<kOfLane> row = {};
  if (columns >= kOfLane) {
    load_piece<kOfLane>(from, 0, row);
  } else if (columns > 0) {
#pragma unroll
    for (int j = 0; j < kOfLane; ++j) {
      if (j < columns) load_piece<1>(from + j, j, row);
    }
  }
  return row;
}

// The sums of eight rows of A at a time, by the lane's columns of C: row 2 t + i of row tile r by column j is
// [r][j / 2][j % 2 * 2 + i].
template <int kRowTiles>
using Sums = float[kRowTiles][kOfLane / 2][4];

// A piece: columns of A that are next to each other, a divisor of bk.
struct Piece {
  int32_t k;      // the first row of B that it meets, -1: there is none
  int32_t block;  // of A
};

// Where the pieces of a lane are in a step.
struct Line {
  int entry, column;

  __device__ Line(const LaunchArgs& args, int step, int of_lane)
      : entry((step * kLanesOfRow + int(threadIdx.x) % kLanesOfRow) * of_lane) {
    const int in_line = entry;
    entry = in_line / args.block_k;
    column = in_line - entry * args.block_k;
  }
  __device__ Piece piece(const LaunchArgs& args, const WorkTile& tile) const {
    if (entry >= tile.entry_count) return {-1, 0};
    const int at = tile.entry_begin + entry;
    return {__ldg(args.entry_k + at) + column, __ldg(args.entry_block + at)};
  }
  __device__ void advance(const LaunchArgs& args, int columns) {
    column += columns;
    if (column == args.block_k) column = 0, ++entry;
  }
};

// What a lane multiplies in a step: A's elements, and rows of B.
template <int kRowTiles, int kDepth>
struct Operands {
  Words<kDepth * 4> a[kRowTiles];
  Words<kOfLane> b[kDepth * 4];
};

// column: of the piece in its block; at: of the step.
template <int kPiece, int kRowTiles, int kDepth>
__device__ inline void load_operands(const LaunchArgs& args, const Piece& piece, int column, int at, int64_t col,
                                     int columns, Operands<kRowTiles, kDepth>& to) {
  const int g = threadIdx.x % 32 / kLanesOfRow;
  const int count = piece.k < 0 ? 0 : int(min(int64_t(kPiece), args.cols - piece.k));  // a block may extend beyond K
  const auto* const values =
      static_cast<const uint16_t*>(args.values) + (int64_t(piece.block) * args.block_m + g) * args.block_k + column;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    const uint16_t* const from = values + r * 8 * args.block_k;
    if (at == 0) to.a[r] = {};
    if (r * 8 + g >= args.block_m) continue;
    if (count == kPiece) {
      load_piece<kPiece>(from, at, to.a[r]);
    } else {
#pragma unroll
      for (int j = 0; j < kPiece; ++j) {
        if (j < count) load_piece<1>(from + j, at + j, to.a[r]);
      }
    }
  }
  const auto* const b = static_cast<const uint16_t*>(args.b) + col;
#pragma unroll
  for (int j = 0; j < kPiece; ++j) {
    to.b[at + j] = load_columns(b + int64_t(piece.k + j) * args.ldb, j < count ? columns : 0);
  }
}

// The pieces of a lane in a step.
template <int kDepth, int kPiece>
struct Places {
  static constexpr int kPieces = kDepth * 4 / kPiece;
  // So that the places of the next step are on their way while the operands of this one are, if there are registers.
  static constexpr bool kAhead = kPiece > 1;
  Piece pieces[kAhead ? kPieces : 1];
  Line line;

  __device__ Places(const LaunchArgs& args, const WorkTile& tile, int step) : line(args, step, kDepth * 4) {
    if constexpr (kAhead) {
      Line at = line;
#pragma unroll
      for (int i = 0; i < kPieces; ++i, at.advance(args, kPiece)) pieces[i] = at.piece(args, tile);
    }
  }
  template <int kRowTiles>
  __device__ void load(const LaunchArgs& args, const WorkTile& tile, int64_t col, int columns,
                       Operands<kRowTiles, kDepth>& to) const {
    Line at = line;
#pragma unroll
    for (int i = 0; i < kPieces; ++i, at.advance(args, kPiece)) {
      const Piece piece = kAhead ? pieces[kAhead ? i : 0] : at.piece(args, tile);
      load_operands<kPiece>(args, piece, at.column, i * kPiece, col, columns, to);
    }
  }
};

// Each four columns of A of a lane meet their rows of B in one instruction.
template <class Element, int kRowTiles, int kDepth>
__device__ inline void multiply(const Operands<kRowTiles, kDepth>& of, Sums<kRowTiles>& sums) {
#pragma unroll
  for (int q = 0; q < kDepth; ++q) {
#pragma unroll
    for (int m = 0; m < kOfLane / 2; ++m) {
      const auto pair = [&](int row, int half) {
        return __byte_perm(of.b[4 * q + row].of[m], of.b[4 * q + row + 1].of[m], half == 0 ? 0x5410 : 0x7632);
      };
      const uint32_t words[4] = {pair(0, 0), pair(0, 1), pair(2, 0), pair(2, 1)};
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
        mma_m16n8k16<Element>(sums[r][m], words, of.a[r].of[2 * q], of.a[r].of[2 * q + 1]);
      }
    }
  }
}

// Writes the warp's sums to shared memory, (8 kRowTiles, kTileN):(kPitch, 1).
template <int kRowTiles>
__device__ inline void put_sums(const Sums<kRowTiles>& sums, float* to) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float* const row = to + (r * 8 + 2 * t + i) * kPitch + g * kOfLane;
#pragma unroll
      for (int m = 0; m < kOfLane / 2; m += 2) {
        *reinterpret_cast<float4*>(row + 2 * m) =
            make_float4(sums[r][m][i], sums[r][m][2 + i], sums[r][m + 1][i], sums[r][m + 1][2 + i]);
      }
    }
  }
}

template <class Element, int kRowTiles, int kPiece>
__global__ void __launch_bounds__(most_threads(kRowTiles), 1) row_mma_kernel(const __grid_constant__ LaunchArgs args) {
  extern __shared__ __align__(16) float shared[];
  constexpr int kOfWarp = kRowTiles * 8 * kPitch, kDepth = depth_of(kRowTiles), kStep = step_of(kRowTiles);
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  // The plan is read while the previous kernel in the stream may still run; what that kernel writes is read behind
  // this.
  WorkTile tile = load_tile(args.tiles + blockIdx.x);
  prefetch_to_l1(args.entry_k + tile.entry_begin + warp * kStep / args.block_k);
  prefetch_to_l1(args.entry_block + tile.entry_begin + warp * kStep / args.block_k);
  start_dependent();
#pragma unroll 1
  for (int at = blockIdx.x;;) {
    const int64_t first_col = int64_t(tile.n_tile) * kTileN, col = first_col + threadIdx.x % 32 / 4 * kOfLane;
    const int columns = int(max(int64_t(0), min(int64_t(kOfLane), args.n - col)));
    const int steps = (tile.entry_count * args.block_k + kStep - 1) / kStep;
    Sums<kRowTiles> sums = {};
    Places<kDepth, kPiece> places(args, tile, warp);
#pragma unroll 1
    for (int step = warp; step < steps; step += warps) {
      Operands<kRowTiles, kDepth> operands;
      places.load(args, tile, col, columns, operands);
      places = Places<kDepth, kPiece>(args, tile, step + warps);
      multiply<Element, kRowTiles>(operands, sums);
    }
    put_sums<kRowTiles>(sums, shared + warp * kOfWarp);
    __syncthreads();
    const float alpha = alpha_of(args.epilogue);
    const bool plain = few_columns::only_scales(args.epilogue, few_columns::kTypeOf<Element>);
    for (int item = threadIdx.x; item < args.block_m * (kTileN / kStoreN); item += blockDim.x) {
      const int row = item / (kTileN / kStoreN), in_tile = item % (kTileN / kStoreN) * kStoreN;
      float of_row[kStoreN] = {};
      for (int of = 0; of < warps; ++of) {
        const float4 part = *reinterpret_cast<const float4*>(shared + of * kOfWarp + row * kPitch + in_tile);
        of_row[0] += part.x, of_row[1] += part.y, of_row[2] += part.z, of_row[3] += part.w;
      }
      const int64_t c_row = int64_t(tile.m_tile) * args.block_m + row, c_col = first_col + in_tile;
      const int of_c = int(max(int64_t(0), min(int64_t(kStoreN), args.n - c_col)));
      if (c_row < args.rows && of_c > 0) {
        few_columns::write_row<Element>(args, plain, alpha, c_row, c_col, of_c, of_row);
      }
    }
    at += gridDim.x;
    if (at >= args.tiles_count) return;
    tile = load_tile(args.tiles + at);
    __syncthreads();
  }
}

using Kernel = void (*)(LaunchArgs);

template <class Element, int kRowTiles>
Kernel kernel_of(int piece) {
  switch (piece) {
    case 8:
      return &row_mma_kernel<Element, kRowTiles, depth_of(kRowTiles) * 4>;
    case 4:
      return &row_mma_kernel<Element, kRowTiles, 4>;
    case 2:
      return &row_mma_kernel<Element, kRowTiles, 2>;
    default:
      return &row_mma_kernel<Element, kRowTiles, 1>;
  }
}

template <class Element>
Kernel kernel_of(int tiles, int piece) {
  switch (tiles) {
    case 1:
      return kernel_of<Element, 1>(piece);
    case 2:
      return kernel_of<Element, 2>(piece);
    case 3:
      return kernel_of<Element, 3>(piece);
    default:
      return kernel_of<Element, 4>(piece);
  }
}

// The warps of a CTA: as many as there is room for if all tiles run at once, and no more than leave the steps of a warp
// fewer, in a row of the mean length. Where sums must not depend on N, as if there were one panel.
inline int warps_of(const LaunchArgs& args) {
  const int64_t block_rows = (args.rows + args.block_m - 1) / args.block_m;
  const int64_t tiles = args.batch_invariant ? block_rows : args.tiles_count;
  return shared_steps(tiles, mean_steps(block_rows, args.nnzb, args.block_m, args.block_k), args.block_m).warps;
}

// Elements of A that are next to each other in a row of a block, and aligned.
inline int piece_of(const LaunchArgs& args) {
  const auto address = reinterpret_cast<uintptr_t>(args.values);
  int piece = kOfLane;
  while (args.block_k % piece != 0 || address % (piece * sizeof(uint16_t)) != 0) piece /= 2;
  return piece;
}

}  // namespace row_mma

template <class Config>
struct RowMmaKernel {
  using Element = typename Config::Element;
  static_assert(Config::kTileN == row_mma::kTileN);

  static cudaError_t prepare() {
    for (int tiles = 1; tiles <= row_mma::row_tiles(row_mma::kMostBlock); ++tiles) {
      for (int piece = 1; piece <= row_mma::kOfLane; piece *= 2) {
        const cudaError_t status =
            cudaFuncSetAttribute(row_mma::kernel_of<Element>(tiles, piece), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 row_mma::sum_bytes(tiles, row_mma::kMostWarps));
        if (status != cudaSuccess) return status;
      }
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const int tiles = row_mma::row_tiles(args.block_m), warps = row_mma::warps_of(args);
    return launch_kernel(row_mma::kernel_of<Element>(tiles, row_mma::piece_of(args)), args.workers, 32 * warps,
                         row_mma::sum_bytes(tiles, warps), args.stream, {/*overlap=*/true}, args);
  }
};

template <class Config>
constexpr KernelOps row_mma_ops() {
  using K = RowMmaKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/2,
                   /*tensor_cores=*/true,
                   /*tma_b=*/true,
                   /*any_rows=*/false,
                   /*align_values=*/sizeof(typename Config::Element),
                   /*any_epilogue=*/true};
  ops.most_rounds = INT32_MAX;
  ops.most_block = row_mma::kMostBlock;
  return ops;
}

}  // namespace sparsek::cuda
