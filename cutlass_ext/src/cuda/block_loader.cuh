// SPDX-License-Identifier: Apache-2.0
// The loads of the wgmma_blocks kernels. Two warps of a CTA share the work, since one alone would keep the tensor cores
// waiting: what a load of a stage consists of has to be ready when the stage becomes free.
//
//   read_plan    a warp takes tiles, reads their entries and lists the loads: first row of B, blocks of A
//   start_loads  one thread waits for a free stage and starts the loads of the next one in the list
//
// The lists hold what is loaded next, kLists * kLoadsOfList stages in all. So the answers of the counter, of the list
// of tiles and of the list of entries, which come one after the other and take as long as a load each, are there in
// time. And tiles are taken equally early by all CTAs, whatever their length.
#pragma once

#include <cuda.h>

#include "collective/tile_queue.hpp"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/ring.cuh"
#include "cuda/ring_kernel.cuh"
#include "cuda/ring_tile.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/wgmma.cuh"
#include "cute/arch/cluster_sm90.hpp"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace wgmma_blocks_kernel {

using namespace ring_kernel;

constexpr int kHalves = kWarpgroups;  // of the rows of a tile: one for each consumer warpgroup
constexpr int kHalfRows = kTileM / kHalves;
constexpr int kHalfBytesA = kHalfRows * kRowBytesA;
constexpr int kChunkBytes = kStageK * kChunkColumns * kElementBytes;
constexpr int kUnitBytesB = kUnitK * kChunkColumns * kElementBytes;  // from a unit of a chunk to the next
constexpr int kLists = 4;                                            // lists of loads
constexpr int kLoadsOfList = 4;
constexpr bool kMaySplit = false;

struct Params : Product {
  CUtensorMap map_a;  // (bk, bm, nnzb), or (bm, bk, nnzb) where A is M-major
  int steps;          // stages of an entry
};

// The loads of one stage.
struct alignas(16) Load {
  int b_row;           // first row of B; in words of 16 bits where B is K-major
  int block[kHalves];  // of each half of the rows, or kNoBlock
  int column;          // of the blocks, in words of 16 bits
};

// The loads of consecutive stages of a tile.
struct alignas(16) LoadList {
  Load load[kLoadsOfList];
  int count;         // 0 after the last tile
  int boxes;         // of B for each stage
  int b_x, b_z;      // coordinates of the first of them in map_b
  int row_in_block;  // first row of the tile in its blocks
};

// Besides the ring. `present` of the ring: bit h: half h of the rows has a block; where Slots > 1.
struct Own {
  LoadList lists[kLists];
  cutlass::arch::ClusterBarrier list_full[kLists], list_empty[kLists];

  __device__ void init(int thread) {
    if (thread != 0) return;
    for (int i = 0; i < kLists; ++i) {
      list_full[i].init(kLoadsOfList);
      list_empty[i].init(1);
    }
  }
};

// One entry of a tile for each lane.
template <int Slots>
struct Entries {
  int32_t b_row = 0;
  int32_t block[Slots] = {};
};

template <int Slots>
__device__ Entries<Slots> read_entries(const LaunchArgs& args, const WorkTile& tile, int entry) {
  Entries<Slots> read;
  if (entry < tile.entry_count) {
    const int64_t at = int64_t(tile.entry_begin) + entry;
    read.b_row = __ldg(args.entry_k + at);
#pragma unroll
    for (int s = 0; s < Slots; ++s) read.block[s] = __ldg(args.entry_block + at * Slots + s);
  }
  return read;
}

// By a whole warp. Each lane holds an entry of the tile, read 32 at a time and ahead.
template <class Mainloop>
__device__ void read_plan(const Params& p, SharedStorage<Mainloop>& shared, int rank, int lane) {
  constexpr int Slots = Mainloop::kSlots, Ctas = Mainloop::kCtas;
  const LaunchArgs& args = p.args;
  const TileList list = tile_list(args);
  RingState<kLists> state;
  TilePlace<kTileDepth> place, taken_place;
  WorkTile tile = first_tile<Ctas, kMaySplit>(args);
  while (tile.m_tile != kNoTile) {
    const int panel = tile.n_tile * Ctas + rank, first_chunk = panel * kChunks;
    const int boxes = p.boxes.of_panel(args, panel);
    const int64_t slot = int64_t(tile.m_tile) * Slots;
    const int row = args.block_m > kTileM / Slots ? int(uint32_t(args.slot_row[slot]) % uint32_t(args.block_m)) : 0;
    const int stages = tile.entry_count * p.steps;
    Entries<Slots> now = read_entries<Slots>(args, tile, lane), next = read_entries<Slots>(args, tile, 32 + lane);
    const auto take_next = [&] {
      if (rank == 0 && lane == 0) shared.tiles.publish(list, claim_tile<Ctas>(list), taken_place);
      ++taken_place;
      __syncwarp();
    };
#pragma unroll 1
    for (int s = 0; s < stages; s += kLoadsOfList, ++state) {
      if (s % (32 * p.steps) == 0 && s > 0) {
        now = next;
        next = read_entries<Slots>(args, tile, s / p.steps + 32 + lane);
      }
      if (stages - s <= kLoadsOfList) take_next();
      // Lane i lists stage s + i. All of these stages are of entries that `now` holds.
      const int stage = s + lane % kLoadsOfList, from = stage / p.steps % 32, k = stage % p.steps * kStageK;
      Load load = {__shfl_sync(0xffffffffu, now.b_row, from) * Mainloop::kWords + k, {}, k};
#pragma unroll
      for (int h = 0; h < kHalves; ++h) load.block[h] = __shfl_sync(0xffffffffu, now.block[h * Slots / kHalves], from);
      LoadList& to = shared.own.lists[state.stage];
      shared.own.list_empty[state.stage].wait(state.phase ^ 1);
      if (stage < stages && lane < kLoadsOfList) to.load[lane] = load;
      if (lane == 0) {
        to.count = min(kLoadsOfList, stages - s);
        to.boxes = boxes;
        const BoxOrigin first = p.boxes.origin(first_chunk, 0);
        to.b_x = first.x, to.b_z = first.z;
        to.row_in_block = row;
      }
      if (lane < kLoadsOfList) shared.own.list_full[state.stage].arrive();
    }
    if (stages == 0) take_next();
    tile = within<Ctas, kMaySplit>(args, shared.tiles.next(place, lane));
    ++place;
  }
  shared.own.list_empty[state.stage].wait(state.phase ^ 1);
  if (lane == 0) shared.own.lists[state.stage].count = 0;
  if (lane < kLoadsOfList) shared.own.list_full[state.stage].arrive();
}

// By one thread, which cute::elect_one_sync has chosen: so the compiler knows that it is alone, and needs no loop over
// lanes for each copy.
template <class Mainloop>
__device__ void start_loads(const Params& p, SharedStorage<Mainloop>& shared, int rank) {
  constexpr int Slots = Mainloop::kSlots, Stages = Mainloop::kStages, Ctas = Mainloop::kCtas;
  const uint32_t box_bytes = p.boxes.chunks * kChunkBytes;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_present = shared_address(shared.present);
  const uint32_t first_a = shared_address(shared.a), first_b = shared_address(shared.b);
  constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
  RingState<Stages> state;
  for (RingState<kLists> at;; ++at) {
    const LoadList& loads = shared.own.lists[at.stage];
    shared.own.list_full[at.stage].wait(at.phase);
    const int count = loads.count, boxes = loads.boxes, b_x = loads.b_x, b_z = loads.b_z, row = loads.row_in_block;
    if (count == 0) return;
#pragma unroll 1
    for (int i = 0; i < count; ++i, ++state) {
      const Load load = loads.load[i];
      const uint32_t full = first_full + state.stage * kBarrierBytes;
      const uint32_t to_a = first_a + state.stage * kStageBytesA, to_b = first_b + state.stage * kStageBytesB;
      const uint32_t present =
          Slots == 1 ? 3 : uint32_t(load.block[0] != kNoBlock) | uint32_t(load.block[1] != kNoBlock) << 1;
      wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
      if constexpr (Slots > 1) store_word(first_present + state.stage * 4, present);
      arrive_and_expect(full, __popc(present) * kHalfBytesA + boxes * box_bytes);
      if constexpr (Mainloop::kMajorB == Major::K) {
        if (boxes > 0) load_box(p.map_b, full, kHint, to_b, {load.b_row, b_x, 0});
      } else if (boxes == 1) {
        load_box(p.map_b, full, kHint, to_b, {b_x, load.b_row, b_z});
      } else {
#pragma unroll 1
        for (int box = 0; box < boxes; ++box) {
          const BoxOrigin further = p.boxes.origin(box * p.boxes.chunks, load.b_row);
          load_box(p.map_b, full, kHint, to_b + box * box_bytes, {b_x + further.x, further.y, b_z + further.z});
        }
      }
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        if (Slots > 1 && load.block[h] == kNoBlock) continue;
        const int first_row = row + (Slots > 1 ? 0 : h * kHalfRows);
        const BoxOrigin from = {Mainloop::kMajorA == Major::K ? load.column : first_row,
                                Mainloop::kMajorA == Major::K ? first_row : load.column, load.block[h]};
        if constexpr (Ctas == 1) {
          load_box(p.map_a, full, kHint, to_a + h * kHalfBytesA, from);
        } else if (h == rank) {
          load_box_to_all<Ctas>(p.map_a, full, kHint, to_a + h * kHalfBytesA, from);
        }
      }
    }
    shared.own.list_empty[at.stage].arrive();
  }
}

}  // namespace wgmma_blocks_kernel
}  // namespace sparsek::cuda
