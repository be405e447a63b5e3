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
  const Params& p;
  const Addresses<C> at;
  uint32_t own_phase = 0;
  RingState<C::kStages> ring;

  __device__ void load_own(int tile, const Heads<C>& heads) {
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_FIRST);
    wait_for_phase(at.own_empty(), own_phase ^ 1);
    own_phase ^= 1;
    arrive_and_expect(at.own_full(), 2 * C::kOwnBytes);
    for (int chunk = 0; chunk < C::kChunks; ++chunk) {
      for (int half = 0; half < kWarpgroups; ++half) {
        const uint32_t to = chunk * kChunkBytes + half * kUnitBytes;
        const int column = chunk * kChunkColumns, row = tile * kAttentionTile + half * kAttentionUnit;
        load_head_box(p.own_x, at.own_full(), kHint, at.own_x() + to, column, row, heads.own, heads.batch);
        load_head_box(p.own_y, at.own_full(), kHint, at.own_y() + to, column, row, heads.own, heads.batch);
      }
    }
  }

  __device__ void load_met(const AttentionStep& step, const Heads<C>& heads) {
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST);
    const int stage = ring.stage, head = heads.met + int(step.unit[1]);
    const int row = int(step.unit[0] & kUnitNumber) * kAttentionUnit;
    const uint32_t full = at.met_full(stage), empty = at.met_empty(stage);
    wait_for_phase(empty, ring.phase ^ 1);
    // A warpgroup that does not use a stage takes no notice of it: this thread releases it in its place.
    if ((step.unit[0] & kEitherUses) != kEitherUses) arrive_times(empty, kConsumerWarps / kWarpgroups);
    arrive_and_expect(full, 2 * C::kMetBytes + (C::kOfKeys ? kRowSumBytes : 0));
    for (int chunk = 0; chunk < C::kChunks; ++chunk) {
      const uint32_t to = chunk * kUnitBytes;
      load_head_box(p.met_x, full, kHint, at.met_x(stage) + to, chunk * kChunkColumns, row, head, heads.batch);
    }
    for (int chunk = 0; chunk < C::kChunks; ++chunk) {
      const uint32_t to = chunk * kUnitBytes;
      load_head_box(p.met_y, full, kHint, at.met_y(stage) + to, chunk * kChunkColumns, row, head, heads.batch);
    }
    if constexpr (C::kOfKeys) {
      const int64_t query = (int64_t(heads.batch) * p.args.heads_q + head) * p.args.padded + row;
      copy_to_shared(at.rows(stage), p.args.rows + query, kRowSumBytes, full);
    }
    ++ring;
  }

  __device__ void load_tile(const WorkTile& tile) {
    const Heads<C> heads(p.args, tile.n_tile);
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
