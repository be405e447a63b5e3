// SPDX-License-Identifier: Apache-2.0
// The thread of a CTA of cuda/attention_gradient.cuh that takes tiles and starts their loads.
#pragma once

#include "cuda/attention_gradient_shared.cuh"
#include "cuda/attention_loads.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

using attention_forward::arrive_times;
using attention_forward::load_head_box;

template <class C>
struct Loader {
  static constexpr int kPieces = C::kMetRows / kAttentionPiece;
  using Pieces = PieceStep<kPieces>;

  const Params& p;
  const Addresses<C> at;
  uint32_t own_phase = 0;
  RingState<C::kStages> ring;

  __device__ void load_own(int tile, const Heads<C>& heads) {
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_FIRST);
    wait_for_phase(at.own_empty(), own_phase ^ 1);
    own_phase ^= 1;
    arrive_and_expect(at.own_full(), C::kOperands * C::kOwnBytes);
    for (int chunk = 0; chunk < C::kChunks; ++chunk) {
      for (int half = 0; half < kWarpgroups; ++half) {
        const uint32_t to = chunk * kChunkBytes + half * kUnitBytes;
        const int column = chunk * kChunkColumns, row = tile * kAttentionTile + half * kAttentionUnit;
        load_head_box(p.own_x, at.own_full(), kHint, at.own_x() + to, column, row, heads.own, heads.batch);
        if constexpr (C::kOfMass) continue;
        load_head_box(p.own_y, at.own_full(), kHint, at.own_y() + to, column, row, heads.own, heads.batch);
      }
    }
  }

  static __device__ uint32_t uses_of(const AttentionStep& step) { return step.unit[0] & kEitherUses; }
  static __device__ uint32_t uses_of(const Pieces& step) { return step.uses(); }

  // Waits until the next stage is empty, and returns the barrier of what is then loaded. A warpgroup that does not use
  // the stage takes no notice of it: this thread releases it in its place.
  __device__ uint32_t take_stage(uint32_t uses) const {
    const uint32_t empty = at.met_empty(ring.stage), full = at.met_full(full_place<C::kStages>(uses, ring.stage));
    wait_for_phase(empty, ring.phase ^ 1);
    if (uses != kEitherUses) arrive_times(empty, kConsumerWarps / kWarpgroups);
    arrive_and_expect(full, C::kOperands * C::kMetBytes + (C::kOfKeys ? C::kRowSumBytes : 0));
    return full;
  }

  __device__ void load_met(const AttentionStep& step, const Heads<C>& heads) {
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST);
    const int stage = ring.stage, head = heads.met + int(step.unit[1]);
    const int row = int(step.unit[0] & kUnitNumber) * kAttentionUnit;
    const uint32_t full = take_stage(uses_of(step));
    for (int chunk = 0; chunk < C::kChunks; ++chunk) {
      const uint32_t to = chunk * C::kMetChunkBytes;
      load_head_box(p.met_x, full, kHint, at.met_x(stage) + to, chunk * kChunkColumns, row, head, heads.batch);
    }
    for (int chunk = 0; chunk < (C::kOfMass ? 0 : C::kChunks); ++chunk) {
      const uint32_t to = chunk * C::kMetChunkBytes;
      load_head_box(p.met_y, full, kHint, at.met_y(stage) + to, chunk * kChunkColumns, row, head, heads.batch);
    }
    if constexpr (C::kOfKeys) {
      const int64_t query = (int64_t(heads.batch) * p.args.heads_q + head) * p.args.padded + row;
      copy_to_shared(at.rows(stage), p.args.rows + query, C::kRowSumBytes, full);
    }
    ++ring;
  }

  // All boxes of a step, since weights of 0 are multiplied by what lies there.
  __device__ void load_met(const Pieces& step, const Heads<C>& heads) {
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST);
    const int stage = ring.stage, head = heads.met + int(step.head);
    const int box = p.args.general.box, pieces = box / kAttentionPiece;
    const uint32_t full = take_stage(uses_of(step));
    const int64_t rows = (int64_t(heads.batch) * p.args.heads_q + head) * p.args.padded;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (i % pieces != 0) continue;
      const int row = Pieces::first_row(step.word[i]);
      for (int chunk = 0; chunk < C::kChunks; ++chunk) {
        const uint32_t to = chunk * C::kMetChunkBytes + i * kAttentionPiece * kRowBytes;
        load_head_box(p.met_x, full, kHint, at.met_x(stage) + to, chunk * kChunkColumns, row, head, heads.batch);
        if constexpr (C::kOfMass) continue;
        load_head_box(p.met_y, full, kHint, at.met_y(stage) + to, chunk * kChunkColumns, row, head, heads.batch);
      }
      if constexpr (C::kOfKeys) {
        copy_to_shared(at.rows(stage) + i * kAttentionPiece * sizeof(RowSums), p.args.rows + rows + row,
                       box * sizeof(RowSums), full);
      }
    }
    ++ring;
  }

  using Step = std::conditional_t<C::kPieces, Pieces, AttentionStep>;
  __device__ Step read_step(int at, const TileLimits& limits) const {
    if constexpr (C::kPieces) {
      return {p.args.general.pieces + at, limits};
    } else {
      const AttentionStep step = p.args.steps[at];
      return {{cut_unit(step.unit[0], limits), step.unit[1]}};
    }
  }

  // As load_tile, without steps of which nothing is left.
  __device__ void load_what_is_left(const WorkTile& tile, const Heads<C>& heads) {
    const TileLimits limits = tile_limits<C::kOfKeys>(p.args, tile.m_tile, heads.batch);
    const int count = limits.sees_none() ? 0 : tile.entry_count;
    int loaded = 0;
    for (int i = 0; i < count; ++i) {
      const Step step = read_step(tile.entry_begin + i, limits);
      if (uses_of(step) == 0) continue;
      load_met(step, heads);
      if (++loaded == 2) load_own(tile.m_tile, heads);
    }
    if (loaded < 2) load_own(tile.m_tile, heads);
  }

  __device__ void load_tile(const WorkTile& tile) {
    const Heads<C> heads(p.args, tile.n_tile);
    if constexpr (C::kGeneral) return load_what_is_left(tile, heads);
    const AttentionStep* const steps = p.args.steps + tile.entry_begin;
    // Own rows are loaded when those of the last tile have become gradients, what they meet before.
    const int before = min(tile.entry_count, 2);
    for (int i = 0; i < before; ++i) load_met(steps[i], heads);
    load_own(tile.m_tile, heads);
    for (int i = before; i < tile.entry_count; ++i) load_met(steps[i], heads);
  }
};

template <class C>
__device__ void produce(const Params& p, Shared<C>& shared) {
  const TileList list{p.args.tiles, p.args.tile_count, p.args.tiles_taken};
  Loader<C> loader{p, {shared_address(&shared)}};
  TilePlace<kTilesAhead> place;
  for (uint32_t index = blockIdx.x;; ++place) {
    shared.tiles.publish(list, index, place);
    if (index >= uint32_t(list.count)) return;
    loader.load_tile(list.tiles[index]);
    index = claim_tile(list);
  }
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
