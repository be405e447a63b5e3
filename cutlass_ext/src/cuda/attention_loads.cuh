// SPDX-License-Identifier: Apache-2.0
// The thread of a CTA of cuda/attention_forward.cuh that takes tiles and starts their loads.
#pragma once

#include <type_traits>

#include "cuda/attention_pieces.cuh"
#include "cuda/attention_shared.cuh"
#include "cute/arch/copy_sm90_tma.hpp"

namespace sparsek::cuda {
namespace attention_forward {

// Copies a box of a 4-D tensor, and signals the barrier.
__device__ inline void load_head_box(const CUtensorMap& map, uint32_t barrier, uint64_t cache_hint, uint32_t to,
                                     int column, int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(to),
      "l"(&map), "r"(barrier), "l"(cache_hint), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}

__device__ inline void arrive_times(uint32_t barrier, uint32_t times) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(times) : "memory");
}

// Whether something of `count` pieces is used.
template <int Pieces>
__device__ bool is_used(const PieceStep<Pieces>& step, int piece, int count) {
  return ((step.used | step.used >> 8) >> piece & ((1 << count) - 1)) != 0;
}

// Where keys and values lie in pages, a warp loads them in place of one thread: cuda/attention_pages.cuh.
template <class C>
struct Loader {
  static constexpr int kPieces = C::kStepRows / kAttentionPiece;
  using Pieces = PieceStep<kPieces>;

  const Params& p;
  const Addresses<C> at;
  RingState<C::kQueryStages> q_state;
  RingState<C::kStages> k_state, v_state;

  __device__ void load_queries(int tile, const Head& head) {
    const int stage = q_state.stage;
    const uint32_t to = at.q(stage), full = at.q_full(stage);
    wait_for_phase(at.q_empty(stage), q_state.phase ^ 1);
    arrive_and_expect(full, C::kTileBytes);
    for (int chunk = 0; chunk < C::kChunks; ++chunk) {
      for (int half = 0; half < kWarpgroups; ++half) {
        load_head_box(p.map_q, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_FIRST),
                      to + chunk * C::kChunkBytes + half * C::kUnitBytes, chunk * kChunkColumns,
                      tile * kAttentionTile + half * kAttentionUnit, head.q, head.batch);
      }
    }
    ++q_state;
  }

  // Waits until a stage is empty. A warpgroup that does not use it takes no notice of it: this thread releases it in
  // its place.
  __device__ static void take_stage(uint32_t empty, uint32_t phase, uint32_t uses) {
    wait_for_phase(empty, phase ^ 1);
    if (uses != kEitherUses) arrive_times(empty, kConsumerWarps / kWarpgroups);
  }

  // The units of a step.
  __device__ void load_units(const CUtensorMap& map, uint32_t to, uint32_t full, const AttentionStep& step,
                             const Head& head) {
    int units = 0;
    for (int u = 0; u < 2; ++u) units += (step.unit[u] & kEitherUses) != 0;
    arrive_and_expect(full, units * C::kChunks * C::kUnitBytes);
    for (int u = 0; u < 2; ++u) {
      if ((step.unit[u] & kEitherUses) == 0) continue;
      const int row = int(step.unit[u] & kUnitNumber) * kAttentionUnit;
      for (int chunk = 0; chunk < C::kChunks; ++chunk) {
        load_head_box(map, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST),
                      to + chunk * C::kChunkBytes + u * C::kUnitBytes, chunk * kChunkColumns, row, head.k, head.batch);
      }
    }
  }
  // The same of transposed bytes, of which a map has pairs.
  __device__ void load_transposed_units(uint32_t to, uint32_t full, const AttentionStep& step, const Head& head) {
    int units = 0;
    for (int u = 0; u < 2; ++u) units += (step.unit[u] & kEitherUses) != 0;
    arrive_and_expect(full, units * C::kUnitBytes);
    for (int u = 0; u < 2; ++u) {
      if ((step.unit[u] & kEitherUses) == 0) continue;
      load_head_box(p.map_v, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST), to + u * C::kUnitBytes,
                    int(step.unit[u] & kUnitNumber) * (kAttentionUnit / 2), 0, head.k, head.batch);
    }
  }
  // Of the boxes of a step, those of which something is left.
  __device__ void load_units(const CUtensorMap& map, uint32_t to, uint32_t full, const Pieces& step, const Head& head) {
    const int pieces = p.args.general.box / kAttentionPiece;
    int boxes = 0;
    for (int i = 0; i < kPieces; i += pieces) boxes += is_used(step, i, pieces);
    arrive_and_expect(full, boxes * pieces * C::kChunks * kAttentionPiece * kRowBytes);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      if (i % pieces != 0 || !is_used(step, i, pieces)) continue;
      for (int chunk = 0; chunk < C::kChunks; ++chunk) {
        load_head_box(map, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST),
                      to + chunk * C::kStepChunkBytes + i * kAttentionPiece * kRowBytes, chunk * kChunkColumns,
                      Pieces::first_row(step.word[i]), head.k, head.batch);
      }
    }
  }
  template <class Step>
  __device__ void load_keys(const Step& step, const Head& head) {
    const int stage = k_state.stage;
    const uint32_t uses = uses_of(step);
    take_stage(at.k_empty(stage), k_state.phase, uses);
    load_units(p.map_k, at.k(stage), at.k_full(full_place<C::kStages>(uses, stage)), step, head);
    ++k_state;
  }
  template <class Step>
  __device__ void load_values(const Step& step, const Head& head) {
    const int stage = v_state.stage;
    const uint32_t uses = uses_of(step);
    take_stage(at.v_empty(stage), v_state.phase, uses);
    if constexpr (C::kTransposedValues) {
      load_transposed_units(at.v(stage), at.v_full(full_place<C::kStages>(uses, stage)), step, head);
    } else {
      load_units(p.map_v, at.v(stage), at.v_full(full_place<C::kStages>(uses, stage)), step, head);
    }
    ++v_state;
  }

  // Values follow their keys by one step, as they are used.
  __device__ void load_tile(const WorkTile& tile) {
    const Head head(p.args, tile.n_tile);
    if constexpr (C::kGeneral) return load_what_is_left(tile, head);
    const AttentionStep* const steps = p.args.steps + tile.entry_begin;
    if (tile.entry_count == 0) return load_queries(tile.m_tile, head);
    AttentionStep step = steps[0];
    load_keys(step, head);
    load_queries(tile.m_tile, head);
    for (int i = 1; i < tile.entry_count; ++i) {
      const AttentionStep next = steps[i];
      load_keys(next, head);
      load_values(step, head);
      step = next;
    }
    load_values(step, head);
  }

  using Step = std::conditional_t<C::kPieces, Pieces, AttentionStep>;
  __device__ Step read_step(int at, const TileLimits& limits) const {
    if constexpr (C::kPieces) {
      return {p.args.general.pieces + at, limits};
    } else {
      const AttentionStep step = p.args.steps[at];
      return {{cut_unit(step.unit[0], limits), cut_unit(step.unit[1], limits)}};
    }
  }

  // As load_tile, without steps of which nothing is left.
  __device__ void load_what_is_left(const WorkTile& tile, const Head& head) {
    const TileLimits limits = tile_limits<false>(p.args, tile.m_tile, head.batch);
    const int count = limits.sees_none() ? 0 : tile.entry_count;
    bool is_first = true;
    Step step;
    for (int i = 0; i < count; ++i) {
      const Step next = read_step(tile.entry_begin + i, limits);
      if (uses_of(next) == 0) continue;
      load_keys(next, head);
      if (is_first) {
        load_queries(tile.m_tile, head);
      } else {
        load_values(step, head);
      }
      is_first = false;
      step = next;
    }
    if (is_first) return load_queries(tile.m_tile, head);
    load_values(step, head);
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

}  // namespace attention_forward
}  // namespace sparsek::cuda
