// SPDX-License-Identifier: Apache-2.0
// The consumers' second walk over tiles with NaN in their sums, of the kernel family "wgmma_gather": the same products,
// without those of zeros that stand for absent blocks, for the chunks of columns that have NaN, two at a time.
//
// A row of an accumulator depends on its own row of A only, and each warp's rows 0 to 7 and 8 to 15 are in different
// registers. So each unit is multiplied into sums of its own, and only the rows of slots that have a block in it are
// added to the sums of the tile.
#pragma once

#include "cuda/gather_tiles.cuh"
#include "cuda/nan_sums.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/wgmma.cuh"

namespace sparsek::cuda {
namespace wgmma_gather_kernel {

// Stores the sums of one chunk of a slab.
template <int Slots>
__device__ void store_chunk(const LaunchArgs& args, const WorkTile& tile, const Slab<Slots>& slab, int chunk,
                            float (&sums)[kChunkGroups][4]) {
  const int64_t first_col = int64_t(panel_of(tile)) * kTileN + chunk * kChunkColumns;
  if (first_col >= args.n) return;
  if (const int place = part_of(tile); place >= 0) {
    store_part(args, sums, first_col,
               slab_of_part(args.parts, place, slab.warp) + chunk * kChunkGroups * 32 + slab.lane);
  } else {
    store_any(args, sums,
              {{slab.row(args, tile, 0), slab.row(args, tile, 1)},
               uint32_t(first_col),
               int(min(int64_t(kChunkColumns), args.n - first_col)),
               slab.lane % 4 * 2});
  }
}

// Adds a stage to the sums of a warpgroup.
template <class Element, int Chunks, int Slots, int Stages>
__device__ void add_again(float (&sums)[Chunks][kChunkGroups][4], Storage<Slots, Stages>& shared, int stage) {
  // Units that are multiplied at once, since each wait takes long; as many as there are registers for.
  constexpr int kTogether = (Slots == 4 || Slots == 8 ? 4 : 2) / Chunks;
  const Slab<Slots> slab = own_slab<Slots>();
  const int warpgroup = slab.warp / 4;
  const uint64_t a = wgmma_descriptor_a(cute::cast_smem_ptr_to_uint(shared.a[stage]) + warpgroup * 64 * kRowBytesA);
  const uint64_t b = wgmma_descriptor_b(cute::cast_smem_ptr_to_uint(shared.b[stage]), kChunkBytes);
  // Byte u: the presence of the slots from the warp's first one on in unit u.
  const uint32_t present =
      read_by_one(reinterpret_cast<const uint32_t*>(shared.own.slots_present[stage][warpgroup]), slab.lane) >>
      slab.slot(0) % kGroupSlots<Slots>;
  const auto has_block = [&](int u, int half) {  // rows 0 to 7 or 8 to 15 of the warp
    return present >> (u * 8 + half * 8 / (kTileM / Slots)) & 1;
  };
#pragma unroll
  for (int first = 0; first < kUnits; first += kTogether) {
    float products[kTogether][Chunks][kChunkGroups][4];
    cute::warpgroup_arrive();
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
#pragma unroll
      for (int c = 0; c < Chunks; ++c) {
        wgmma_ss<Element>(products[i][c], advanced(a, (first + i) * kUnitK * kElementBytes),
                          advanced(b, (first + i) * kUnitBytesB + c * kChunkBytes), false);
      }
    }
    cute::warpgroup_commit_batch();
    cute::warpgroup_wait<0>();
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
#pragma unroll
      for (int c = 0; c < Chunks; ++c) wgmma_fence(products[i][c]);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (!has_block(first + i, h)) continue;
#pragma unroll
        for (int j = 0; j < Chunks * kChunkGroups; ++j) {
          float(&to)[4] = sums[j / kChunkGroups][j % kChunkGroups];
          const float(&of)[4] = products[i][j / kChunkGroups][j % kChunkGroups];
          to[h * 2] += of[h * 2];
          to[h * 2 + 1] += of[h * 2 + 1];
        }
      }
    }
  }
}

// Whether the sums of the chunks that the slab has marked are NaN, in all rows of C that have a block in the tile:
// others stay 0.
template <int Chunks, int Slots>
__device__ bool are_all_nan(const LaunchArgs& args, const Round& round, uint32_t at, const WalkedChunks& chunks,
                            const Slab<Slots>& slab, const float (&sums)[Chunks][kChunkGroups][4]) {
  const WorkTile& tile = round.tile[at];
  const uint32_t with_blocks = slots_with_blocks(args, tile, Slots, {slab.slot(0), slab.slot(1)}, slab.lane);
  const bool counts[2] = {(with_blocks & 1) != 0 && slab.row(args, tile, 0) < args.rows,
                          (with_blocks & 2) != 0 && slab.row(args, tile, 1) < args.rows};
  bool ends = true;
#pragma unroll
  for (int c = 0; c < Chunks; ++c) {
    const bool all = all_nan(sums[c], counts);
    ends = ends && (all || !round.marked(at, slab.warp, c == 0 ? chunks.first() : chunks.second()));
  }
  return ends;
}

// Computes chunks of tile `at` of the round. state: the next stage of the ring.
template <class Element, int Chunks, int Slots, int Stages>
__device__ void walk_again(const Params& p, Storage<Slots, Stages>& shared, RingState<Stages>& state, uint32_t at,
                           const WalkedChunks& chunks, float (&sums)[Chunks][kChunkGroups][4]) {
#pragma unroll 1
  for (int part = 0; part < 2; ++part) {
    int entries = entries_before_look(p, shared.own.round.tile[at].entry_count);
    if (part == 1) {
      entries = shared.own.round.tile[at].entry_count - entries;
      if (entries == 0) break;
      const Slab<Slots> slab = own_slab<Slots>();
      const bool ends = are_all_nan(p.args, shared.own.round, at, chunks, slab, sums);
      if (shared.own.meeting.agree(kProducerWarps + slab.warp, slab.lane, ends)) break;
    }
#pragma unroll 1
    for (int stages = stages_of(p, entries); stages > 0; --stages, ++state) {
      shared.full[state.stage].wait(state.phase);
      cutlass::arch::fence_view_async_shared();  // A was written by threads, and is read by tensor cores
      add_again<Element>(sums, shared, state.stage);
      __syncwarp();
      if (own_slab<Slots>().lane == 0) shared.empty[state.stage].arrive();
    }
  }
}

// Computes and stores what is marked in a round, by all consumers.
template <class Element, int Slots, int Stages>
__device__ void consume_again(const Params& p, Storage<Slots, Stages>& shared, RingState<Stages>& state) {
#pragma unroll 1
  for (uint32_t at = shared.own.round.next_marked(0); at < kRoundTiles; at = shared.own.round.next_marked(at + 1)) {
#pragma unroll 1
    for (WalkedChunks chunks = {shared.own.round.marked_chunks(at)}; chunks.left != 0; chunks = chunks.next()) {
      float sums[kWalkChunks][kChunkGroups][4] = {};
      if (chunks.count() == 1) {
        walk_again<Element>(p, shared, state, at, chunks, reinterpret_cast<float(&)[1][kChunkGroups][4]>(sums[0]));
      } else {
        walk_again<Element>(p, shared, state, at, chunks, sums);
      }
      const Slab<Slots> slab = own_slab<Slots>();
#pragma unroll 1
      for (int c = 0; c < chunks.count(); ++c) {
        const int chunk = c == 0 ? chunks.first() : chunks.second();
        if (shared.own.round.marked(at, slab.warp, chunk)) {
          store_chunk(p.args, shared.own.round.tile[at], slab, chunk, sums[0]);
        }
#pragma unroll
        for (int i = 0; i < kChunkGroups * 4; ++i) sums[0][i / 4][i % 4] = sums[1][i / 4][i % 4];
      }
    }
  }
}

// Walks the marked tiles of a round again. tile: the first one of the next round.
template <class Element, int Slots, int Stages>
__device__ void second_walk(const Params& p, Storage<Slots, Stages>& shared, RingState<Stages>& state, WorkTile& tile) {
  const auto meet = [&] {
    const Slab<Slots> slab = own_slab<Slots>();
    shared.own.meeting.meet(kProducerWarps + slab.warp, slab.lane);
  };
  const Slab<Slots> slab = own_slab<Slots>();
  shared.own.meeting.meet_by_one(kProducerWarps + slab.warp, slab.lane);
  const bool any = shared.own.round.any();
  if (tile.m_tile != kNoTile) meet();  // before there are marks of the next round
  if (!any) return;
  consume_again<Element>(p, shared, state);
  meet();  // before the marks are cleared
  tile = shared.own.round.next;
  meet();  // and after that
}

}  // namespace wgmma_gather_kernel
}  // namespace sparsek::cuda
