// SPDX-License-Identifier: Apache-2.0
// What the kernel families "wgmma_blocks" and "wgmma_gather" have in common: tiles of 128 x 256, stages of 64 columns
// of A and 64 rows of B, loaded by one warpgroup, multiplied by two, each of which has half of the tile's rows.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "collective/tile_queue.hpp"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/tensor_map.h"

namespace sparsek::cuda {
namespace ring_kernel {

constexpr int kElementBytes = 2;  // of A and B
constexpr int kTileM = 128;
constexpr int kTileN = 256;                   // columns of a CTA
constexpr int kStageK = 128 / kElementBytes;  // columns of A: a row of the 128-byte swizzle
constexpr int kUnitK = 32 / kElementBytes;    // columns of A of one wgmma instruction
constexpr int kUnits = kStageK / kUnitK;
constexpr int kChunkColumns = 128 / kElementBytes;  // columns of B, likewise
constexpr int kChunks = kTileN / kChunkColumns;
constexpr int kRowBytesA = kStageK * kElementBytes;
constexpr int kStageBytesA = kTileM * kRowBytesA;
constexpr int kStageBytesB = kStageK * kTileN * kElementBytes;
constexpr int kGroups = kTileN / 8;              // accumulators of a thread: (kGroups, 4)
constexpr int kWarpgroups = 2;                   // of consumers
constexpr int kConsumerWarps = 4 * kWarpgroups;  // each has a slab of the tile: 16 rows
constexpr int kProducers = 128;                  // threads
constexpr int kThreads = kProducers + kConsumerWarps * 32;
constexpr int kTileDepth = 4;  // of the queue of tiles
// Tiles of a CTA after which it walks those with NaN again; before that they are in its shared memory.
constexpr uint32_t kRoundTiles = 128;

// How B is cut into boxes.
struct BoxesOfB {
  int chunks;             // of 64 columns in a box
  bool chunks_are_outer;  // the map has a dimension for chunks

  static BoxesOfB of(const LaunchArgs& args) {
    const int64_t all = (args.n + kChunkColumns - 1) / kChunkColumns;
    const bool outer = args.n % kChunkColumns == 0 && !args.b_k_major;
    return {!outer && !args.b_k_major ? 1 : int(all < kChunks ? all : kChunks), outer};
  }
  // Makes the descriptor of B: (64, K, N / 64) where N is a multiple of 64, else (N, K, 1); (K, N, 1) where it is
  // K-major.
  cudaError_t make_map(CUtensorMap* map, const LaunchArgs& args, int box_rows, int box_chunks) const {
    const int64_t row_bytes = args.ldb * kElementBytes;
    if (args.b_k_major) {
      return make_tensor_map(map, args.b, {{args.cols, args.n, 1}, {row_bytes, row_bytes}},
                             {box_rows, box_chunks * kChunkColumns, 1}, 128);
    }
    const TensorMapShape shape = chunks_are_outer ? TensorMapShape{{kChunkColumns, args.cols, args.n / kChunkColumns},
                                                                   {row_bytes, kChunkColumns * kElementBytes}}
                                                  : TensorMapShape{{args.n, args.cols, 1}, {row_bytes, row_bytes}};
    return make_tensor_map(map, args.b, shape, {kChunkColumns, box_rows, box_chunks}, 128);
  }
  // Those that cover a panel.
  __device__ int of_panel(const LaunchArgs& args, int panel) const {
    const int64_t columns = args.n - int64_t(panel) * kTileN;
    const int needed = int(max(int64_t(0), min(int64_t(kChunks), (columns + kChunkColumns - 1) / kChunkColumns)));
    return (needed + chunks - 1) / chunks;
  }
  // Where one begins: x and z of the chunk `chunk` of C, at a row of B.
  __device__ BoxOrigin origin(int chunk, int row) const {
    return {chunks_are_outer ? 0 : chunk * kChunkColumns, row, chunks_are_outer ? chunk : 0};
  }
};

__device__ inline TileList tile_list(const LaunchArgs& args) {
  return {args.tiles, args.tiles_count, args.tiles_taken, uint32_t(args.late_workers)};
}

// The tile's panel of columns. MaySplit: the tile may be a part.
template <bool MaySplit>
__device__ int panel_or_part(const WorkTile& tile) {
  return MaySplit ? panel_of(tile) : tile.n_tile;
}

// A tile beyond the product's columns has nothing to sum up. Ctas: of a cluster, which compute neighbouring panels of
// each tile.
template <int Ctas, bool MaySplit>
__device__ WorkTile within(const LaunchArgs& args, WorkTile tile) {
  if (int64_t(panel_or_part<MaySplit>(tile)) * (kTileN * Ctas) >= args.n) tile.entry_count = 0;
  return tile;
}

// The first tile of the CTA or cluster, beyond the product's columns where it has none of its own (TileList::late).
template <int Ctas, bool MaySplit>
__device__ WorkTile first_tile(const LaunchArgs& args) {
  WorkTile tile = load_tile(args.tiles + blockIdx.x / Ctas);
  if (blockIdx.x / Ctas + args.late_workers >= gridDim.x / Ctas) {
    tile.n_tile = int32_t((args.n + kTileN * Ctas - 1) / (kTileN * Ctas));
  }
  return within<Ctas, MaySplit>(args, tile);
}

}  // namespace ring_kernel
}  // namespace sparsek::cuda
