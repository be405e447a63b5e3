// SPDX-License-Identifier: Apache-2.0
// Keys and values in pages of a cache (AttentionPages): how a step of cuda/attention_forward.cuh is loaded out of them,
// and how keys of pages that are not there are hidden.
//
// A box of a load lies in one page: it has as many rows as divide those of a page, and of the list's boxes. The maps of
// keys and values have the pages in place of batches, so that a page which is none of the cache is outside of the map,
// and TMA writes zeros without reading.
//
// A warp loads in place of a thread: of each step, a lane has a chunk of a piece, and those whose piece begins a box
// look up its page and start its copies. So pages are looked up side by side, once for keys and values, and before the
// warp waits for a stage.
#pragma once

#include "cuda/attention_loads.cuh"
#include "cuda/attention_pieces.cuh"
#include "cuda/attention_shared.cuh"
#include "cute/arch/copy_sm90_tma.hpp"

namespace sparsek::cuda {
namespace attention_forward {

template <class C>
struct PageLoader {
  static constexpr int kPieces = C::kStepRows / kAttentionPiece;
  static constexpr int kPieceBytes = kAttentionPiece * kRowBytes;
  static constexpr uint32_t kAllLanes = 0xffffffff, kAllPieces = (1 << kPieces) - 1;
  // What lanes copy lies in a stage in their order.
  static_assert(C::kChunks * kPieces <= 32 && C::kStepChunkBytes == kPieces * kPieceBytes);

  struct Step {
    // kFirstUses, kSecondUses or both, and bits of the pieces with which boxes begin that are loaded. 0 where nothing
    // is left.
    uint32_t word = 0;
    int row, page;  // of the lane's box, where its piece begins one of these: its first row in its page

    __device__ uint32_t uses() const { return word & kEitherUses; }
    __device__ uint32_t boxes() const { return word & kAllPieces; }
  };
  // The lane's, if one begins with its piece.
  struct Box {
    int first;
    bool is_used;
  };

  const Params& p;
  const Addresses<C> at;
  const uint32_t lane;
  // Of the CTA. Counts in place of positions in rings, which are more registers.
  uint32_t tiles = 0, steps = 0;

  __device__ uint32_t piece() const { return lane % kPieces; }
  __device__ uint32_t chunk() const { return lane / kPieces; }
  // 1, 2 or 4.
  __device__ uint32_t pieces_of_box() const { return uint32_t(p.args.general.box) / kAttentionPiece; }

  // Reads what is left of step i of the list. Returns which warpgroups use it.
  __device__ uint32_t read_box(int i, const TileLimits& limits, Box& box) const {
    if constexpr (C::kPieces) {
      const PieceStep<1> own(p.args.general.pieces[i], piece(), limits);
      const uint32_t first = __ballot_sync(kAllLanes, own.is_used_by(0)) & kAllPieces,
                     second = __ballot_sync(kAllLanes, own.is_used_by(1)) & kAllPieces;
      box.first = own.first_row(own.word[0]);
      box.is_used = ((first | second) >> piece() & ((1u << pieces_of_box()) - 1)) != 0;
      return (first != 0 ? kFirstUses : 0) | (second != 0 ? kSecondUses : 0);
    } else {
      constexpr int kOfUnit = kAttentionUnit / kAttentionPiece;
      const uint32_t unit = cut_unit(__ldg(p.args.steps[i].unit + piece() / kOfUnit), limits);
      box.first = int((unit & kUnitNumber) * kAttentionUnit + piece() % kOfUnit * kAttentionPiece);
      box.is_used = (unit & kEitherUses) != 0;
      return __reduce_or_sync(kAllLanes, unit & kEitherUses);
    }
  }

  // Step i, whose pages are still being read when this returns. Boxes behind the end of the keys are not loaded.
  __device__ Step read_step(int i, const TileLimits& limits, const int32_t* table) const {
    Step step;
    Box box;
    step.word = read_box(i, limits, box);
    const bool loads = (piece() & (pieces_of_box() - 1)) == 0 && box.is_used && box.first < limits.met_end;
    step.word |= __ballot_sync(kAllLanes, loads) & kAllPieces;
    const int in_table = int(uint32_t(box.first) / uint32_t(p.pages.rows));
    step.row = box.first - in_table * p.pages.rows;
    step.page = loads ? __ldg(table + in_table) : 0;
    return step;
  }

  // Makes a page that is not there none of the cache. Returns bits of the pieces that have none.
  __device__ uint32_t find_missing(Step& step) const {
    const bool is_there = uint32_t(step.page) < uint32_t(p.pages.count);
    if (!is_there) step.page = -1;
    return (__ballot_sync(kAllLanes, !is_there) & step.boxes()) * ((1u << pieces_of_box()) - 1);
  }

  // Of the stage of a step, which its keys and its values have of their own.
  __device__ static int stage_of(uint32_t number) { return int(number % C::kStages); }
  __device__ static uint32_t phase_of(uint32_t number) { return number / C::kStages & 1; }

  // Starts the copies of a step, of which lane 0 has told the barrier.
  __device__ void copy(const CUtensorMap& map, uint32_t to, uint32_t full, const Step& step, const Head& head) const {
    __syncwarp();
    if (chunk() >= C::kChunks || (step.boxes() >> piece() & 1) == 0) return;
    load_head_box(map, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST), to + lane * kPieceBytes,
                  chunk() * kChunkColumns, step.row, head.k, step.page);
  }
  __device__ uint32_t bytes(const Step& step) const {
    return __popc(step.boxes()) * pieces_of_box() * C::kChunks * kPieceBytes;
  }

  // Lets warpgroups know which pieces have no page before the barrier can complete.
  __device__ void load_keys(Step& step, const Head& head) {
    const int stage = stage_of(steps);
    const uint32_t full = at.k_full(full_place<C::kStages>(step.uses(), stage));
    const uint32_t missing = find_missing(step);
    if (lane == 0) {
      Loader<C>::take_stage(at.k_empty(stage), phase_of(steps), step.uses());
      store_word(at.missing(stage), missing);
      arrive_and_expect(full, bytes(step));
    }
    copy(p.map_k, at.k(stage), full, step, head);
    ++steps;
  }
  // number: of the step, from 0.
  __device__ void load_values(const Step& step, uint32_t number, const Head& head) const {
    const int stage = stage_of(number);
    const uint32_t full = at.v_full(full_place<C::kStages>(step.uses(), stage));
    if (lane == 0) {
      Loader<C>::take_stage(at.v_empty(stage), phase_of(number), step.uses());
      arrive_and_expect(full, bytes(step));
    }
    copy(p.map_v, at.v(stage), full, step, head);
  }
  __device__ void load_queries(int tile, const Head& head) const {
    if (lane != 0) return;
    Loader<C> loader{p, at, {int(tiles % C::kQueryStages), tiles / C::kQueryStages & 1}};
    loader.load_queries(tile, head);
  }

  // As Loader::load_what_is_left.
  __device__ void load_tile(const WorkTile tile) {
    const Head head(p.args, tile.n_tile);
    TileLimits limits = tile_limits<false>(p.args, tile.m_tile, head.batch);
    limits.share();
    const int32_t* const table = p.pages.table + head.batch * p.pages.stride;
    const int end = tile.entry_begin + (limits.sees_none() ? 0 : tile.entry_count);
    Step step;
    for (int i = tile.entry_begin; i < end; ++i) {
      Step next = read_step(i, limits, table);
      if (next.word == 0) continue;
      load_keys(next, head);
      if (step.word == 0) {
        load_queries(tile.m_tile, head);
      } else {
        load_values(step, steps - 2, head);
      }
      step = next;
    }
    if (step.word == 0) return load_queries(tile.m_tile, head);
    load_values(step, steps - 1, head);
  }
};

// By a warp.
template <class C>
__device__ void produce_pages(const Params& p, Shared<C>& shared, int lane) {
  const TileList list{p.args.tiles, p.args.tile_count, p.args.tiles_taken};
  const Addresses<C> at{shared_address(&shared)};
  PageLoader<C> loader{p, at, uint32_t(lane)};
  for (uint32_t index = blockIdx.x;; ++loader.tiles) {
    const TilePlace<kTilesAhead> place{int(loader.tiles % kTilesAhead), loader.tiles / kTilesAhead & 1};
    if (lane == 0) shared.tiles.publish(list, index, place);
    if (index >= uint32_t(list.count)) return;
    loader.load_tile(list.tiles[index]);
    if (lane == 0) index = claim_tile(list);
    index = __shfl_sync(0xffffffffu, index, 0);
  }
}

// Sets scores of the pieces that are missing to -inf.
template <int Groups>
__device__ void hide_missing(float (&s)[Groups][4], uint32_t missing) {
  if (missing == 0) return;
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if ((missing >> g / 2 & 1) != 0) s[g][e] = -INFINITY;
    }
  }
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
