// SPDX-License-Identifier: Apache-2.0
// What the producers and the consumers of kernel family "wgmma_scatter" share: the parameters, the sizes and shared
// memory.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <type_traits>

#include "cuda/launch_args.h"
#include "cuda/ring_tile.cuh"
#include "cuda/stage_parts.h"
#include "cuda/stage_tiles.h"
#include "cuda/stage_values.h"
#include "cuda/tma_store.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

using ring_kernel::BoxesOfB;
using ring_kernel::kChunkColumns;
using ring_kernel::kElementBytes;
using ring_kernel::kStageBytesA;
using ring_kernel::kStageK;
using ring_kernel::kTileM;
using ring_kernel::kUnitK;
using ring_kernel::kUnits;

static_assert(kListRows == kTileM && kListColumns == kStageK && kListRowBytes == kStageK * kElementBytes);
static_assert(kStageTileBytes == kStageBytesA);

// What limits these kernels are the instructions of a producer warp, one after the other. So each quarter of a stage is
// written by one of two warps, which have the stages in turn.
constexpr int kTurns = 2;
constexpr int kQuarterBytes = kQuarterRows * kListRowBytes;
// Warpgroups that multiply. Where a tile is narrow, one has both halves of its rows, so that the threads of two CTAs
// have enough registers.
constexpr int warpgroups_of(int tile_n) { return tile_n <= 64 ? 1 : 2; }
constexpr int kChunkBytes = kStageK * kChunkColumns * kElementBytes;
// What a warp copies to shared memory at once: a list, or a part of one, its places and then its values. So many copies
// are under way or there.
constexpr int kPartUnits = 6, kHalfPartBytes = kPartUnits * kUnit * kElementBytes, kPartBytes = 2 * kHalfPartBytes;
constexpr int slots_of(int tile_n) { return tile_n <= 64 ? 2 : 4; }
constexpr uint32_t kWarp = 0xffffffffu;

struct Params {
  CUtensorMap map_b;      // see BoxesOfB
  CUtensorMap map_chunk;  // likewise, with boxes of one chunk of columns
  CUtensorMap map_c;      // (N, M, 1), or (M, N, 1) where C is M-major; set if by_tma
  LaunchArgs args;
  ScatteredRows rows;
  BoxesOfB boxes;
  const uint16_t* values;  // in the order of the lists
  const uint8_t* stages;   // of A, as the lists would make them (stage_tiles.h); null: they are made of the lists
  float4* sums;            // of the parts of tiles, see scatter_join.cuh
  uint32_t* with_nan;      // (tiles, slabs of 16 rows), see scatter_again.cuh; null: in shared memory
  int32_t groups, panels;  // of 128 rows, of columns
  int32_t parts;           // of each tile, along K
  int32_t tiles;           // or parts of them, if there is more than one of each
  bool by_tma;             // C is stored by TMA
};

// Where producers write A's stages from lists: the parts of these.
template <int TileN>
struct ListMemory {
  static constexpr int kProducerWarps = kTurns * kQuarters, kSlots = slots_of(TileN);
  static constexpr int kFullArrivals = kQuarters + 1;  // of a stage: a warp's rows of A each, and that B is on its way
  alignas(16) uint8_t parts[kProducerWarps][kSlots][kPartBytes];
  cutlass::arch::ClusterTransactionBarrier copied[kProducerWarps][kSlots];
};

// Where A is laid out: a warp starts all copies, and the others of its warpgroup give up their registers.
struct NoLists {
  static constexpr int kProducerWarps = 4, kFullArrivals = 1;
};

constexpr int kSlabs = kTileM / kStoreRows;  // of a tile

template <int TileN, int Stages>
struct StageMemory {
  static constexpr int kWarpgroups = warpgroups_of(TileN), kConsumerWarps = 4 * kWarpgroups;
  static constexpr int kHalves = 2 / kWarpgroups;  // of a tile's rows, that a warpgroup has
  static constexpr int kTileN = TileN, kStages = Stages, kStageBytesB = TileN / kChunkColumns * kChunkBytes;
  alignas(1024) uint8_t b[Stages][kStageBytesB];
  alignas(1024) uint8_t a[Stages][kStageBytesA];
  alignas(1024) StoreBuffers buffers[kConsumerWarps];
};

// Of scatter_again.cuh. kNotedTiles: as there is room for.
template <int TileN, int Stages>
struct AgainMemory {
  static constexpr int kNotedTiles = TileN <= 64 ? 24 : 80;
  uint32_t with_nan[kNotedTiles][kSlabs];
  cutlass::arch::ClusterBarrier behind_tiles;      // where all warps meet, once
  bool has_nan;                                    // of any tile
  bool done[2][Stages][4 * warpgroups_of(TileN)];  // in each other round of the ring, at a stage: of each warp
};

template <int Stages>
struct StageBarriers {
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

// MajorB: of B's stages. AnyC: C may be M-major, and c_in one column, as LaunchArgs say.
template <int TileN, int Stages, bool LaidOut, Major MajorB = Major::MN, bool AnyC = false>
struct Storage : StageMemory<TileN, Stages>,
                 std::conditional_t<LaidOut, NoLists, ListMemory<TileN>>,
                 StageBarriers<Stages>,
                 AgainMemory<TileN, Stages> {
  static constexpr bool kLaidOut = LaidOut, kAnyC = AnyC;
  static constexpr Major kMajorB = MajorB;
  // Whether an M-major C is stored by TMA, where it may be: there are no registers for it beside those of wide lists.
  static constexpr bool kColumnsByTma = LaidOut || TileN <= 64;
  static constexpr int kPassGroups = LaidOut ? 8 : 4;  // of 8 columns (scatter_again.cuh): as registers allow
  static constexpr int kProducers = 32 * Storage::kProducerWarps;
  static constexpr int kThreads = kProducers + 32 * Storage::kConsumerWarps;
};

// A tile of C, or a part of one. The tiles of a panel of columns follow each other, so that B's part stays in L2. Those
// in parts come with all first parts, then with all next ones, and a CTA has but one.
struct Place {
  int group, panel;
  __device__ Place(const Params& p, int tile) : group(tile % p.groups), panel(tile / p.groups) {
    if (p.parts > 1) panel %= p.panels;
  }
  // The tile's stages in which a row has blocks.
  __device__ int steps(const Params& p) const {
    return p.rows.has_all_stages ? int(p.rows.sizes.stages) : __ldg(p.rows.lists.counts + group);
  }
};

// The CTA's part of a tile's steps.
struct PartOfSteps {
  int begin, count;
  __device__ PartOfSteps(const Params& p, int steps) : begin(0), count(steps) {
    if (p.parts == 1) return;
    const int part = int(blockIdx.x) / (p.groups * p.panels);
    begin = steps * part / p.parts;
    count = steps * (part + 1) / p.parts - begin;
  }
};

// Rows of B that a box brings. Of a K-major one, also those behind a stage's columns: there A's stage has zeros.
__host__ __device__ inline int rows_of_box(const LaunchArgs& args, const ListSizes& sizes) {
  return args.b_k_major ? kStageK : int(sizes.columns);
}

template <class Storage>
__device__ uint32_t bytes_of_chunk(const Params& p) {
  const int rows = Storage::kMajorB == Major::K ? kStageK : int(p.rows.sizes.columns);
  return rows * kChunkColumns * kElementBytes;
}
template <class Storage>
__device__ uint32_t bytes_of_box(const Params& p) {
  return p.boxes.chunks * bytes_of_chunk<Storage>(p);
}

// Where the box of a chunk of 64 columns of C begins, at a row of B.
template <class Storage>
__device__ BoxOrigin origin_of_box(const Params& p, int chunk, int row) {
  if constexpr (Storage::kMajorB == Major::K) return {row, chunk * kChunkColumns, 0};
  return p.boxes.origin(chunk, row);
}

// Of B, for a stage of a panel.
template <class Storage>
__device__ int boxes_of(const Params& p, int panel) {
  constexpr int kChunks = Storage::kTileN / kChunkColumns;
  const auto chunks = int((p.args.n - int64_t(panel) * Storage::kTileN + kChunkColumns - 1) / kChunkColumns);
  return (min(kChunks, chunks) + p.boxes.chunks - 1) / p.boxes.chunks;
}

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
