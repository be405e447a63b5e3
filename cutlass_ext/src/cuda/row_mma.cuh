// SPDX-License-Identifier: Apache-2.0
// Kernel family "row_mma": blocks of at most 256 x 256 of every size, tens of columns, and matrices so small that
// latency takes the time. A CTA computes one block row, or a slice of at most 32 rows of it, by 64 columns of C, of
// fp32 and fp64 by 32. Its warps share the blocks of the row, so that all loads of a short row are in flight at once,
// and their sums are added up in shared memory.
//
// The blocks of a row are one line of columns, whatever their width, of which a step is 32 or 16. A warp multiplies the
// transposed, C^T = B^T A^T, by m16n8k16: lane (g, t) has eight or four consecutive columns of the line, of rows g, g +
// 8 and so on of A, and the rows of B that they meet (cuda/row_mma_operands.cuh). Numbers of fp32 are multiplied and
// added in fp64.
//
//   A   values (nnzb, bm, bk):(bm bk, bk, 1), to registers, in pieces of consecutive elements that are aligned
//   B   (K, N):(ldb, 1), to registers, in pieces that are aligned; any address and pitch
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
#include "cuda/row_mma_operands.cuh"
#include "cuda/row_mma_sizes.h"

namespace sparsek::cuda {
namespace row_mma {

// By which registers leave room for warps_of_sm.
constexpr int most_threads(int row_tiles, int element_bytes) {
  return 32 * std::max(most_warps(row_tiles, element_bytes), registers_of(row_tiles, element_bytes).warps_of_sm);
}

// A tile and its sums in shared memory.
template <class Element>
struct Tile {
  using Number = typename Lane<Element>::Number;
  static constexpr int kBytes = sizeof(Element), kN = Lane<Element>::kTileN, kColumns = Lane<Element>::kColumns;
  static constexpr int kVector = 16 / kBytes;  // columns of a lane that are next to each other; others are a vector of
                                               // each of the eight lanes of a row further
  static constexpr int kPitch = kN + 16 / int(sizeof(Number));
  static constexpr int kStoreN = 16 / int(sizeof(Number));  // columns of C that a thread writes at once

  static constexpr int sums_of_warp(int row_tiles) { return row_tiles * 8 * kPitch; }
  static constexpr int sum_bytes(int row_tiles, int warps) {
    return warps * sums_of_warp(row_tiles) * int(sizeof(Number));
  }
};

// The sums of eight rows of A at a time, by the lane's columns of C: row 2 t + i of row tile r by column j is
// [r][j / 2][j % 2 * 2 + i].
template <class Element, int kRowTiles>
using Sums = typename Lane<Element>::Number[kRowTiles][Lane<Element>::kColumns / 2][4];

// One of the slices of all tiles. The slices of a tile follow each other.
template <int kRowTiles>
struct Slice {
  static constexpr bool kIsWhole = kRowTiles % 2 != 0;  // slices of larger blocks have 16 or 32 rows
  int count = 1;                                        // of a tile
  int tile, first_row = 0;

  __device__ Slice(const LaunchArgs& args, int at) : tile(at) {
    if constexpr (!kIsWhole) {
      count = (args.block_m - 1) / (kRowTiles * 8) + 1;
      tile = at / count;
      first_row = (at - tile * count) * (kRowTiles * 8);
    }
  }
  __device__ WorkTile load(const LaunchArgs& args) const { return load_tile(args.tiles + tile); }
};

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
template <class Element, int kRowTiles, int kDepth>
struct Operands {
  Elements<kDepth * 4, sizeof(Element)> a[kRowTiles];
  Elements<Lane<Element>::kColumns, sizeof(Element)> b[kDepth * 4];
};

// The columns of B that a lane reads, in pieces of kPieceB.
template <class Element, int kPieceB>
struct Columns {
  static constexpr int kVector = Tile<Element>::kVector, kVectors = Tile<Element>::kColumns / kVector;
  const Element* b;  // at the lane's first column
  int left;          // columns of C from there on, 0 or less: none

  __device__ Columns(const LaunchArgs& args, const WorkTile& tile) {
    const int64_t col = int64_t(tile.n_tile) * Tile<Element>::kN + threadIdx.x % 32 / kLanesOfRow * kVector;
    b = static_cast<const Element*>(args.b) + col;
    left = int(max(int64_t(0), min(int64_t(Tile<Element>::kN), args.n - col)));
  }
  // Of row k of B; 0 if not `is_one`.
  __device__ void load(const LaunchArgs& args, bool is_one, int64_t k,
                       Elements<Tile<Element>::kColumns, sizeof(Element)>& to) const {
    const Element* const row = b + k * args.ldb;
    if (kPieceB == kVector || args.n >= kVector) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
#pragma unroll
        for (int j = 0; j < kVector; j += kPieceB) {
          const int ahead = v * 8 * kVector + j;
          load_piece<kPieceB>(is_one && ahead < left, row + ahead, v * kVector + j, to);
        }
      }
    } else {
      // Loads that no lane needs take time too.
      to = {};
#pragma unroll
      for (int j = 0; j < kVector; j += kPieceB) {
        if (j >= args.n) break;
        load_piece<kPieceB>(is_one && j < left, row + j, j, to);
      }
    }
  }
};

// column: of the piece in its block; first_row: of the slice in its block row; at: of the step.
template <int kPiece, class Element, int kPieceB, int kRowTiles, int kDepth>
__device__ inline void load_operands(const LaunchArgs& args, const Piece& piece, int column, int first_row, int at,
                                     const Columns<Element, kPieceB>& columns,
                                     Operands<Element, kRowTiles, kDepth>& to) {
  const int first = first_row + threadIdx.x % 32 / kLanesOfRow;
  const int count = piece.k < 0 ? 0 : int(min(int64_t(kPiece), args.cols - piece.k));  // a block may extend beyond K
  const Element* from = static_cast<const Element*>(args.values) +
                        (int64_t(piece.block) * (args.block_m * args.block_k) + (first * args.block_k + column));
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
    if (r > 0) {
      from += 8 * args.block_k;
      asm("" : "+l"(from));  // or all addresses would be in registers at once
    }
    const bool is_row = first + r * 8 < args.block_m;
    load_piece<kPiece>(is_row && count == kPiece, from, at, to.a[r]);
    if (kPiece > 1 && count > 0 && count < kPiece) {
#pragma unroll
      for (int j = 0; j < kPiece; ++j) load_piece<1>(is_row && j < count, from + j, at + j, to.a[r]);
    }
  }
#pragma unroll
  for (int j = 0; j < kPiece; ++j) columns.load(args, j < count, piece.k + j, to.b[at + j]);
}

// The pieces of a lane in a step.
template <int kDepth, int kPiece>
struct Places {
  static constexpr int kPieces = kDepth * 4 / kPiece;
  // The places of the next step are on their way while the operands of this one are: to registers, or where these are
  // too few to L1.
  static constexpr bool kAhead = kPiece > 1;
  Piece pieces[kAhead ? kPieces : 1];
  Line line;

  __device__ Places(const LaunchArgs& args, const WorkTile& tile, int step) : line(args, step, kDepth * 4) {
    if constexpr (kAhead) {
      Line at = line;
#pragma unroll
      for (int i = 0; i < kPieces; ++i, at.advance(args, kPiece)) pieces[i] = at.piece(args, tile);
    } else if (line.entry < tile.entry_count) {
      prefetch_to_l1(args.entry_k + tile.entry_begin + line.entry);
      prefetch_to_l1(args.entry_block + tile.entry_begin + line.entry);
    }
  }
  template <class Element, int kPieceB, int kRowTiles>
  __device__ void load(const LaunchArgs& args, const WorkTile& tile, int first_row,
                       const Columns<Element, kPieceB>& columns, Operands<Element, kRowTiles, kDepth>& to) const {
    Line at = line;
#pragma unroll
    for (int i = 0; i < kPieces; ++i, at.advance(args, kPiece)) {
      const Piece piece = kAhead ? pieces[kAhead ? i : 0] : at.piece(args, tile);
      load_operands<kPiece>(args, piece, at.column, first_row, i * kPiece, columns, to);
    }
  }
};

// Writes the warp's sums to shared memory, (8 kRowTiles, kN):(kPitch, 1).
template <class Element, int kRowTiles>
__device__ inline void put_sums(const Sums<Element, kRowTiles>& sums, typename Tile<Element>::Number* to) {
  using T = Tile<Element>;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      auto* const row = to + (r * 8 + 2 * t + i) * T::kPitch + g * T::kVector;
#pragma unroll
      for (int j = 0; j < T::kColumns; j += 2) {
        *reinterpret_cast<few_columns::Vector<2, typename T::Number>*>(
            row + j / T::kVector * 8 * T::kVector + j % T::kVector) = {sums[r][j / 2][i], sums[r][j / 2][2 + i]};
      }
    }
  }
}

// Adds up the sums of the warps and writes C.
template <class Element, int kRowTiles>
__device__ inline void write_tile(const LaunchArgs& args, const WorkTile& tile, int first_row,
                                  const typename Tile<Element>::Number* sums) {
  using T = Tile<Element>;
  using Four = few_columns::Vector<T::kStoreN, typename T::Number>;
  const int warps = blockDim.x / 32;
  const auto alpha = alpha_of(args.epilogue);
  const bool plain = few_columns::only_scales(args.epilogue, few_columns::kTypeOf<Element>);
  const int rows = min(kRowTiles * 8, args.block_m - first_row);
  for (int item = threadIdx.x; item < rows * (T::kN / T::kStoreN); item += blockDim.x) {
    const int row = item / (T::kN / T::kStoreN), in_tile = item % (T::kN / T::kStoreN) * T::kStoreN;
    Four all = {};
    for (int of = 0; of < warps; ++of) {
      const Four part =
          *reinterpret_cast<const Four*>(sums + of * T::sums_of_warp(kRowTiles) + row * T::kPitch + in_tile);
#pragma unroll
      for (int j = 0; j < T::kStoreN; ++j) all.of[j] += part.of[j];
    }
    Sum<Element> of_row[T::kStoreN];
#pragma unroll
    for (int j = 0; j < T::kStoreN; ++j) of_row[j] = static_cast<Sum<Element>>(all.of[j]);
    const int64_t c_row = int64_t(tile.m_tile) * args.block_m + first_row + row,
                  c_col = int64_t(tile.n_tile) * T::kN + in_tile;
    const int columns = int(max(int64_t(0), min(int64_t(T::kStoreN), args.n - c_col)));
    if (c_row < args.rows && columns > 0) {
      few_columns::write_row<Element>(args, plain, alpha, c_row, c_col, columns, of_row);
    }
  }
}

template <class Element, int kRowTiles, int kPiece, int kPieceB>
__global__ void __launch_bounds__(most_threads(kRowTiles, sizeof(Element)), 1)
    row_mma_kernel(const __grid_constant__ LaunchArgs args) {
  using T = Tile<Element>;
  extern __shared__ __align__(16) char shared[];
  auto* const sums_of_warps = reinterpret_cast<typename T::Number*>(shared);
  constexpr int kDepth = registers_of(kRowTiles, sizeof(Element)).depth, kStep = kDepth * 4 * kLanesOfRow;
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  // The plan is read while the previous kernel in the stream may still run; what that kernel writes is read behind
  // this.
  int at = blockIdx.x;
  WorkTile tile = Slice<kRowTiles>(args, at).load(args);
  if (const int entry = warp * kStep / args.block_k; entry < tile.entry_count) {
    prefetch_to_l1(args.entry_k + tile.entry_begin + entry);
    prefetch_to_l1(args.entry_block + tile.entry_begin + entry);
  }
  start_dependent();
#pragma unroll 1
  while (true) {
    const Columns<Element, kPieceB> columns(args, tile);
    const int steps = (tile.entry_count * args.block_k + kStep - 1) / kStep;
    Sums<Element, kRowTiles> sums = {};
    Places<kDepth, kPiece> places(args, tile, warp);
#pragma unroll 1
    for (int step = warp; step < steps; step += warps) {
      Operands<Element, kRowTiles, kDepth> operands;
      places.load(args, tile, Slice<kRowTiles>(args, at).first_row, columns, operands);
      places = Places<kDepth, kPiece>(args, tile, step + warps);
      Lane<Element>::template multiply<kRowTiles, kDepth>(operands.a, operands.b, sums);
    }
    put_sums<Element, kRowTiles>(sums, sums_of_warps + warp * T::sums_of_warp(kRowTiles));
    __syncthreads();
    const Slice<kRowTiles> own(args, at);
    write_tile<Element, kRowTiles>(args, own.load(args), own.first_row, sums_of_warps);  // again, for want of registers
    at += gridDim.x;
    if (at >= args.tiles_count * own.count) return;
    tile = Slice<kRowTiles>(args, at).load(args);
    __syncthreads();
  }
}

using Kernel = void (*)(LaunchArgs);

// Elements of A of a piece, at most.
template <class Element, int kRowTiles>
constexpr int kMostPiece = std::min(Tile<Element>::kVector, registers_of(kRowTiles, sizeof(Element)).depth * 4);

// The next smaller piece of B that there are kernels for: a word, or an element.
constexpr int smaller_piece_b(int piece, int element_bytes) { return element_bytes == 2 && piece > 2 ? 2 : 1; }

// By pieces of A and of B, at most these.
template <class Element, int kRowTiles, int kPiece, int kPieceB>
Kernel kernel_of_pieces(int piece, int piece_b) {
  if constexpr (kPiece > 1) {
    if (piece < kPiece) return kernel_of_pieces<Element, kRowTiles, kPiece / 2, kPieceB>(piece, piece_b);
  }
  if constexpr (kPieceB > 1) {
    constexpr int kNext = smaller_piece_b(kPieceB, sizeof(Element));
    if (piece_b < kPieceB) return kernel_of_pieces<Element, kRowTiles, kPiece, kNext>(piece, piece_b);
  }
  return &row_mma_kernel<Element, kRowTiles, kPiece, kPieceB>;
}

template <class Element, int kRowTiles = kMostRowTiles>
Kernel kernel_of(int tiles, int piece, int piece_b) {
  if constexpr (kRowTiles > 1) {
    if (tiles < kRowTiles) return kernel_of<Element, kRowTiles - 1>(tiles, piece, piece_b);
  }
  return kernel_of_pieces<Element, kRowTiles, kMostPiece<Element, kRowTiles>, Tile<Element>::kVector>(piece, piece_b);
}

// The warps of a CTA. Where sums must not depend on N, as if there were one panel.
inline int warps_of(const LaunchArgs& args, int element_bytes) {
  const int64_t block_rows = (args.rows + args.block_m - 1) / args.block_m;
  return shared_steps(args.batch_invariant ? block_rows : args.tiles_count, block_rows, args.nnzb, args.block_m,
                      args.block_k, element_bytes)
      .warps;
}

// Elements of A that are next to each other in a row of a block, and aligned, 16 bytes at most.
inline int piece_of(const LaunchArgs& args, int element_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(args.values);
  int piece = 16 / element_bytes;
  while (args.block_k % piece != 0 || address % (piece * element_bytes) != 0) piece /= 2;
  return piece;
}

// Elements of B that are next to each other in a row, and aligned, of those that there are kernels for.
inline int piece_of_b(const LaunchArgs& args, int element_bytes) {
  const auto address = reinterpret_cast<uintptr_t>(args.b);
  int piece = 16 / element_bytes;
  const int64_t n = args.padded_b ? 0 : args.n;
  while (piece > 1 && ((n | args.ldb) % piece != 0 || address % (piece * element_bytes) != 0)) {
    piece = smaller_piece_b(piece, element_bytes);
  }
  return piece;
}

}  // namespace row_mma

template <class Config>
struct RowMmaKernel {
  using Element = typename Config::Element;
  using Tile = row_mma::Tile<Element>;
  static_assert(Config::kTileN == Tile::kN);

  static cudaError_t prepare() {
    for (int tiles = 1; tiles <= row_mma::kMostRowTiles; ++tiles) {
      for (int piece = 1; piece <= Tile::kVector; piece *= 2) {
        for (int piece_b = Tile::kVector, before = 0; piece_b != before;
             before = piece_b, piece_b = row_mma::smaller_piece_b(piece_b, sizeof(Element))) {
          const cudaError_t status = cudaFuncSetAttribute(
              row_mma::kernel_of<Element>(tiles, piece, piece_b), cudaFuncAttributeMaxDynamicSharedMemorySize,
              Tile::sum_bytes(tiles, row_mma::most_warps(tiles, sizeof(Element))));
          if (status != cudaSuccess) return status;
        }
      }
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const int tiles = row_mma::row_tiles(args.block_m), warps = row_mma::warps_of(args, sizeof(Element));
    const row_mma::Kernel kernel = row_mma::kernel_of<Element>(tiles, row_mma::piece_of(args, sizeof(Element)),
                                                               row_mma::piece_of_b(args, sizeof(Element)));
    return launch_kernel(kernel, args.workers, 32 * warps, Tile::sum_bytes(tiles, warps), args.stream,
                         {/*overlap=*/true}, args);
  }
};

template <class Config>
constexpr KernelOps row_mma_ops() {
  using K = RowMmaKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/2,
                   /*tensor_cores=*/sizeof(typename K::Element) == 2,  // of fp64, none that cut sums off
                   /*tma_b=*/false,
                   /*any_rows=*/false,
                   /*align_values=*/sizeof(typename K::Element),
                   /*any_epilogue=*/true};
  ops.most_rounds = INT32_MAX;
  ops.most_block = row_mma::kMostBlock;
  return ops;
}

}  // namespace sparsek::cuda
