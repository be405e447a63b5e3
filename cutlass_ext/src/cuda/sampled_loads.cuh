// SPDX-License-Identifier: Apache-2.0
// What a CTA of the kernels of cuda/sampled_wgmma.cuh has in shared memory, and the warps that fill it: one takes
// tiles, the others start loads.
#pragma once

#include <cuda.h>

#include "collective/tile_queue.hpp"
#include "cuda/ring.cuh"
#include "cuda/sampled.h"
#include "cuda/sampled_store.cuh"
#include "cuda/sampled_tile.h"
#include "cuda/shared_address.cuh"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cute/arch/mma_sm90.hpp"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace sampled_wgmma_kernel {

using cute::SM90::GMMA::Major;

constexpr int kDepth = 64, kMmaDepth = 16, kSteps = kDepth / kMmaDepth;
constexpr int kRowBytes = kDepth * 2;  // of a swizzled row
constexpr int kStripBytes = kStripRows * kDepth * 2;
constexpr int kWarpgroups = 2, kConsumerWarps = 4 * kWarpgroups, kProducers = 128;
constexpr int kThreads = kProducers + kConsumerWarps * 32;
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
constexpr int kMostBlocks = 4;  // of a cell
constexpr int kTiles = 4;       // that are known ahead or still in use
constexpr int kLead = 12;       // turns before the end of a tile when the next one is taken
constexpr int kReader = 3;      // warp
constexpr int kStages = 3, kStageBytes = 9 * 8192;

// Width: of a cell.
template <int Width, Major X, Major Y>
struct Config {
  static_assert(Width == 64 || Y == Major::K);
  static constexpr int kWidth = Width;
  static constexpr Major kX = X, kY = Y;
  static constexpr int kCells = most_sampled_cells(Width);  // of a warpgroup
  static constexpr int kGroups = kCells * Width / 8;        // of 8 columns, of a thread's sums
  static constexpr int kColumnBytes = Width * kDepth * 2;
  static constexpr int kLoaders = Width == 64 ? 1 : Width == 32 ? 2 : 3;  // warps
  static constexpr int kMostWords = sampled_tile_words(Width, kMostBlocks);
  static_assert(kStripBytes + 2 * kSampledColumns * kRowBytes <= kStageBytes);
};

template <class C>
struct Shared {
  alignas(1024) uint8_t stages[kStages][kStageBytes];
  // Behind the stages, since wgmma reads multiples of 64 columns, also beyond the last ones.
  alignas(128) uint8_t buffers[kConsumerWarps][kStoreBytes];
  static_assert(sizeof(buffers) >= (64 - C::kWidth) * kDepth * 2);
  alignas(16) int32_t tiles[kTiles][C::kMostWords];
  cutlass::arch::ClusterTransactionBarrier full[kStages];
  cutlass::arch::ClusterBarrier empty[kStages];
  cutlass::arch::ClusterTransactionBarrier known[kTiles];
  cutlass::arch::ClusterBarrier unused[kTiles];
};

struct Params {
  CUtensorMap map_x, map_y;  // K-major: (n, rows, 1), else (rows, n, 1)
  SampledArgs args;
};

__device__ inline int turns_of(const SampledArgs& p) { return static_cast<int>((p.n + kDepth - 1) / kDepth); }

// Words in shared memory as one thread reads them.
struct WordsOfThread {
  const int32_t* first;
  __device__ int32_t operator[](int at) const { return first[at]; }
};

// As a warp does: by lane 0, which gives the tile back for all. Not by a shuffle, since the compiler knows of a
// reduction that all lanes have the same, and needs no register of each.
struct WordsOfWarp {
  const int32_t* first;
  int lane;
  __device__ int32_t operator[](int at) const {
    return static_cast<int32_t>(__reduce_or_sync(0xffffffffu, lane == 0 ? static_cast<uint32_t>(first[at]) : 0));
  }
};

// See cuda/sampled_tile.h.
template <class C, class Words>
struct Tile {
  Words words;
  uint32_t packed;
  int columns, strips;

  __device__ explicit Tile(const Words& of) : words(of) {
    packed = static_cast<uint32_t>(of[0]);
    columns = packed & 255;
    strips = packed >> 24;
  }
  __device__ bool is_there() const { return packed != static_cast<uint32_t>(kNoSampledTile); }
  __device__ int cells(int warpgroup) const { return packed >> (8 + 8 * warpgroup) & 255; }
  __device__ int first_row(int strip) const { return words[1 + strip]; }
  __device__ int first_column(int column) const { return words[kSampledHeader + column]; }
  // The strip of a warpgroup, and the first of its columns of Y.
  __device__ int strip_of(int warpgroup) const { return warpgroup * (strips - 1); }
  __device__ int column_of(int warpgroup) const { return warpgroup == 0 ? 0 : columns - cells(1); }
  // The block at place `of_cell` of a cell that has `blocks`.
  __device__ int32_t block(int warpgroup, int cell, int blocks, int of_cell) const {
    return words[kSampledHeader + 2 * C::kCells + (warpgroup * C::kCells + cell) * blocks + of_cell];
  }
  // Of a turn, and how many turns a stage has.
  __device__ uint32_t bytes() const { return strips * kStripBytes + columns * C::kColumnBytes; }
  __device__ int turns_of_stage() const { return kStageBytes / bytes(); }
};

// Gives tiles back to the reader. Those that load a tile give it back with delay, so that no tile is taken long before
// it is computed: others might have nothing to do meanwhile.
template <class C>
struct Releases {
  uint32_t first;         // barrier
  int next = 1 - kTiles;  // tile; those before the first one are given back too

  __device__ explicit Releases(Shared<C>& shared) : first(shared_address(shared.unused)) {}
  __device__ void release(int tile) const { arrive_in_cluster<1>(first + (tile & (kTiles - 1)) * kBarrierBytes); }
  __device__ void release_until(int tile) {
    for (; next <= tile; ++next) release(next);
  }
};

// By one thread: takes tiles and has them copied.
template <class C>
__device__ void read_tiles(const SampledArgs& p, Shared<C>& shared) {
  const TileList list = {nullptr, *p.tile_count, p.tiles_taken};
  uint32_t index = blockIdx.x;
  for (int tile = 0;; ++tile) {
    const int at = tile % kTiles;
    if (tile > 0) {
      // The first uses of all places but the first one wait for the tiles before the first.
      shared.unused[at].wait((tile / kTiles - (at == 0)) & 1);
      // No sooner: a tile that is taken waits behind those before it.
      index = claim_tile(list);
    }
    if (index >= uint32_t(list.count)) {
      shared.tiles[at][0] = kNoSampledTile;
      shared.known[at].arrive();
      return;
    }
    const int bytes = p.tile_words * 4;
    shared.known[at].arrive_and_expect_tx(bytes);
    copy_to_shared(cute::cast_smem_ptr_to_uint(shared.tiles[at]), p.tiles + int64_t{index} * p.tile_words, bytes,
                   cute::cast_smem_ptr_to_uint(&shared.known[at]));
  }
}

// The words of a tile, when they are known.
template <class C>
__device__ const int32_t* wait_for_tile(Shared<C>& shared, int tile) {
  const int at = tile % kTiles;
  shared.known[at].wait(tile / kTiles & 1);
  return shared.tiles[at];
}

// By one thread of each of kLoaders warps.
template <class C>
__device__ void start_loads(const Params& params, Shared<C>& shared, int loader) {
  constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
  const SampledArgs& p = params.args;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_stage = shared_address(shared.stages);
  const int turns = turns_of(p);
  const int ahead = turns >= kLead ? 1 : turns >= kLead / 2 ? 2 : 3;  // tiles
  const int asks = max(0, turns - 1 - kLead);                         // the turn in which the next one is taken
  Releases<C> releases(shared);
  releases.release_until(ahead - 1 - kTiles);
  RingState<kStages> state;
  const auto load = [&](const CUtensorMap& map, Major major, int first, uint32_t full, uint32_t to, int turn) {
    load_box(map, full, kHint, to,
             major == Major::K ? BoxOrigin{turn * kDepth, first, 0} : BoxOrigin{first, turn * kDepth, 0});
  };
  for (int t = 0;; ++t) {
    const Tile<C, WordsOfThread> tile({wait_for_tile(shared, t)});
    if (!tile.is_there()) return;
    const int of_stage = tile.turns_of_stage();
    if (turns == 0) releases.release_until(t + ahead - kTiles);
    int in_stage = 0;  // turns
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
      const uint32_t full = first_full + state.stage * kBarrierBytes;
      const uint32_t to = first_stage + state.stage * kStageBytes + in_stage * tile.bytes();
      if (in_stage == 0) {
        wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
        // Also those that load nothing of the tile: else they could fall behind by more than the ring, whose phases
        // look alike then.
        if (loader == 0) {
          arrive_and_expect(full, min(of_stage, turns - turn) * tile.bytes());
        } else {
          arrive_in_cluster<1>(full);
        }
      }
      if (loader == 0) {
        for (int strip = 0; strip < tile.strips; ++strip) {
          load(params.map_x, C::kX, tile.first_row(strip), full, to + strip * kStripBytes, turn);
        }
      }
#pragma unroll 4
      for (int column = loader; column < tile.columns; column += C::kLoaders) {
        load(params.map_y, C::kY, tile.first_column(column), full,
             to + tile.strips * kStripBytes + column * C::kColumnBytes, turn);
      }
      if (++in_stage == of_stage || turn == turns - 1) {
        in_stage = 0;
        ++state;
      }
      if (turn == asks) releases.release_until(t + ahead - kTiles);
    }
  }
}

}  // namespace sampled_wgmma_kernel
}  // namespace sparsek::cuda
