// SPDX-License-Identifier: Apache-2.0
// Attention's forward pass. A CTA takes tiles of 128 queries. One thread loads them, and keys and values step by step
// (cuda/attention_loads.cuh), or a warp out of pages (cuda/attention_pages.cuh); each of two warpgroups multiplies 64
// queries. Per step and warpgroup:
//
//   s = q k^T          wgmma, both operands in shared memory   (64, 128)
//   p = exp2(s - top)  in registers                            cuda/attention_softmax.cuh
//   o += p v           wgmma, p in registers                   (64, head size)
//
// Products of a step run while exponentials are made: q k^T of a step is begun before p v of the one before it, so that
// a warpgroup's own p v goes on under its exponentials, and the other warpgroup's products do anyway.
//
// Of kernels with a bias, warps copy that of a step to shared memory before they wait for its keys, or before the
// exponentials of the step before (cuda/attention_bias_tile.cuh).
//
// General kernels cut steps off tile by tile (cuda/attention_pieces.cuh), so that the order of those that are left is
// no longer that of the list: a warpgroup that does not use two steps that follow each other ends its products first.
#pragma once

#include <type_traits>

#include "cuda/attention_bias_tile.cuh"
#include "cuda/attention_loads.cuh"
#include "cuda/attention_pages.cuh"
#include "cuda/attention_pieces.cuh"
#include "cuda/attention_softmax.cuh"
#include "cuda/attention_steps.cuh"
#include "cuda/attention_store.cuh"
#include "cuda/attention_terms.cuh"
#include "cuda/launch.cuh"
#include "cuda/wgmma_registers.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace attention_forward {

// A B of 16 rows of 1024 bytes of zeros.
__device__ inline uint64_t zero_descriptor(uint32_t zeros) {
  cute::GmmaDescriptor descriptor;
  descriptor.desc_ = wgmma_descriptor_b(zeros, 0);
  descriptor.bitfield.stride_byte_offset_ = 0;
  return descriptor.desc_;
}

template <class C>
struct Consumer {
  using Element = typename C::Element;
  using Pieces = PieceStep<C::kStepRows / kAttentionPiece>;
  using Step = std::conditional_t<C::kPieces, Pieces, AttentionStep>;
  static constexpr int kDepthSteps = C::kStepRows / 16;  // of p v
  using Scores = float[C::kStepRows / 8][4];
  // Pieces without a page are taken off the step where that needs fewer registers than hiding their scores.
  static constexpr bool kHidesInStep = C::kPaged && C::kPieces && C::kStepRows == kAttentionTile;
  // Whether a step is read, and its bias copied, before the exponentials of the one before it. Steps of pieces would
  // need too many registers.
  static constexpr bool kLooksAhead = C::kTerms && !C::kPieces;
  // Whether a step's keys are released after its exponentials, although they have been read before: with heads of 64
  // columns that is faster (docs/notes/attention-forward.md).
  static constexpr bool kReleasesLate = !C::kGeneral && C::kHeadSize == 64;
  struct Ahead {  // the step that has been read so
    int i = -1;
    Step step;
  };
  struct Held {  // a step whose values are to be multiplied
    int stage;
    uint32_t phase;  // of the stage's barriers
    Step step;
  };

  const Params& p;
  const Addresses<C> at;
  const int warpgroup, warp, lane;  // warp: of the warpgroup
  const uint32_t use = warpgroup == 0 ? kFirstUses : kSecondUses;
  const uint64_t k_descriptor = wgmma_descriptor_a(at.k(0)),
                 v_descriptor = wgmma_descriptor_b(at.v(0), C::kStepChunkBytes), zeros = zero_descriptor(at.zeros());
  const float headroom = kHeadroom / p.scale_log2;
  StageReader<C::kStages> ring;
  RingState<C::kQueryStages> q_state;

  __device__ bool uses(const AttentionStep& step) const { return ((step.unit[0] | step.unit[1]) & use) != 0; }
  __device__ bool hides(const AttentionStep& step) const {
    return ((step.unit[0] | step.unit[1]) & kPartialUnit) != 0 || (step.unit[0] & step.unit[1] & use) == 0;
  }
  __device__ bool uses(const Pieces& step) const { return step.is_used_by(warpgroup); }
  __device__ bool hides(const Pieces& step) const { return (step.whole & row_bit()) == 0; }
  __device__ uint32_t row_bit() const { return 1u << (4 * warpgroup + warp); }
  // Whether the piece's values are multiplied.
  __device__ bool multiplies(const AttentionStep& step, int piece) const {
    return (step.unit[piece * kAttentionPiece / kAttentionUnit] & use) != 0;
  }
  __device__ bool multiplies(const Pieces& step, int piece) const { return step.is_used_by(warpgroup, piece); }

  // Step i of a tile. Its words are the same in all lanes, and the compiler knows it.
  __device__ Step read_step(const WorkTile& tile, int i, const TileLimits& limits) const {
    if constexpr (C::kPieces) {
      Step step(p.args.general.pieces + tile.entry_begin + i, limits);
      step.share();
      return step;
    } else {
      return read_units<C>(p, tile, i, limits);
    }
  }
  __device__ Step read_step(const WorkTile& tile, int i, const TileLimits& limits, const Ahead& ahead) const {
    if constexpr (kLooksAhead) {
      if (ahead.i == i) return ahead.step;
    }
    return read_step(tile, i, limits);
  }
  // Whether nothing of a step is left, so that it has no stage.
  __device__ static bool is_cut_off(const Step& step) { return C::kGeneral && uses_of(step) == 0; }
  __device__ void release(uint32_t barrier) const {
    if (lane == 0) arrive_in_cluster<1>(barrier);
  }

  // Begins s = q k^T.
  __device__ void begin_scores(Scores& s, uint64_t q) const {
    const uint64_t k = advanced(k_descriptor, ring.stage * C::kStepBytes);
    wgmma_fence(s);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < C::kHeadSize / 16; ++step) {
      const uint32_t chunk = step / 4, at = step % 4 * 32;
      wgmma_ss<Element, Major::K>(s, advanced(q, chunk * kChunkBytes + at),
                                  advanced(k, chunk * C::kStepChunkBytes + at), step > 0);
    }
    cute::warpgroup_commit_batch();
  }

  // Begins o += p v. What a unit that the warpgroup does not use has in v is not multiplied, since it may be infinite.
  __device__ void begin_values(float (&o)[C::kGroups][4], const uint32_t (&weights)[kDepthSteps][4],
                               const Held& held) const {
    const uint64_t v = advanced(v_descriptor, held.stage * C::kStepBytes);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
      wgmma_rs<Element>(o, weights[step], multiplies(held.step, step) ? advanced(v, step * 16 * kRowBytes) : zeros);
    }
    cute::warpgroup_commit_batch();
  }

  // Of the step whose keys have been waited for: pieces whose page is not there, the same in all lanes.
  __device__ uint32_t missing_pieces() const {
    uint32_t missing = 0;
    if constexpr (C::kPaged) {
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(missing) : "r"(at.missing(ring.stage)) : "memory");
      missing = __shfl_sync(0xffffffffu, missing, 0);
    }
    return missing;
  }

  // Values beyond a length become zeros, since what they are multiplied by is 0.
  __device__ void wait_for_values(const Held& held, const TileLimits& limits) const {
    wait_for_phase(at.v_full(full_place<C::kStages>(uses_of(held.step), held.stage)), held.phase);
    if constexpr (C::kGeneral) {
      const uint32_t values = at.v(held.stage);
      const int thread = warp * 32 + lane;
      if (!has_end(held.step, limits.met_end)) return;
      zero_ends<C::kChunks>(values, C::kStepChunkBytes, held.step, limits.met_end, thread);
      end_zeros(warpgroup);
    }
  }

  // What becomes of new scores before they are exponents.
  __device__ void finish_scores(Scores& s, Step& step, const TileLimits& limits, int row, int n_tile,
                                uint32_t missing) const {
    if constexpr (C::kGeneral) {
      if constexpr (kHidesInStep) step.hide(missing);
      if (p.cap_log2 > 0) cap_scores(s, p.cap_log2);
      if constexpr (C::kTerms) add_bias(s);
      if (hides(step)) hide_what_is_cut(s, step, limits, row);
      if constexpr (C::kTerms) mask(s, step, limits, row, n_tile);
      if constexpr (C::kPaged && !kHidesInStep) hide_missing(s, missing);
    } else {
      if (hides(step)) hide(s, step, use, row, lane, {p.args.low, p.args.high, p.args.seq_k});
    }
  }
  __device__ void hide_what_is_cut(Scores& s, const Step& step, const TileLimits& limits, int row) const {
    if constexpr (C::kPieces) {
      hide_pieces(s, step, limits, row_bit(), row, lane);
    } else {
      hide(s, step, use, row, lane, {limits.low, limits.high, limits.met_end});
    }
  }
  __device__ void mask(Scores& s, const Step& step, const TileLimits& limits, int row, int n_tile) const {
    const AttentionTerms& terms = p.args.general.terms;
    if (terms.mask == nullptr) return;
    const Head head(p.args, n_tile);
    mask_scores<false>(s, terms, step, limits, head.batch, head.q, p.args.heads_q, row - lane / 4, lane);
  }

  __device__ BiasPlace bias_place() const {
    return {at.bias_tile(4 * warpgroup + warp), at.bias_rows(4 * warpgroup + warp)};
  }
  // Begins to copy the bias of what the warp meets of a step. row: the thread's first.
  __device__ void begin_bias_of_step(const Step& step, const TileLimits& limits, int row) const {
    if constexpr (C::kTerms) {
      const AttentionTerms& terms = p.args.general.terms;
      if (terms.bias == nullptr) return;
      begin_bias<false, C::kStepRows>(
          bias_place(), terms, 0, limits.own_end - (row - lane / 4), lane,
          [&](uint32_t key) { return met_run(step, key, limits.met_end, C::kPieces ? row_bit() : use); });
    }
  }
  // s = scale s + bias, where there is one. Scores that are hidden afterwards may have anything.
  __device__ void add_bias(Scores& s) const {
    const AttentionTerms& terms = p.args.general.terms;
    if (terms.bias == nullptr) return;
    const uint32_t tile = bias_place().tile;
    end_bias();
    if (terms.is_float) return attention_forward::add_bias<float>(s, tile, p.score_scale, lane);
    attention_forward::add_bias<Element>(s, tile, p.score_scale, lane);
  }

  __device__ static void round(const Scores& s, uint32_t (&weights)[kDepthSteps][4]) {
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&of)[4] = s[step * 2 + i / 2];
        weights[step][i] = pack<Element>(of[i % 2 * 2], of[i % 2 * 2 + 1]);
      }
    }
  }

  // The steps from i on, behind one that this warpgroup uses.
  __device__ __forceinline__ void add_steps(const WorkTile& tile, int& i, int count, const TileLimits& limits,
                                            uint64_t q, int row, RowState& rows, Held& held,
                                            uint32_t (&weights)[kDepthSteps][4], float (&o)[C::kGroups][4]) {
    int unused = 0;  // steps that follow each other
    Ahead ahead;
    for (; i < count; ++i) {
      Step step = read_step(tile, i, limits, ahead);
      if (is_cut_off(step)) continue;
      if (!uses(step)) {
        ++ring;
        if (C::kGeneral && ++unused == 2) return;
        continue;
      }
      unused = 0;
      if (ahead.i != i) begin_bias_of_step(step, limits, row);
      Scores s;
      const uint32_t phase = wait_for_keys(at, ring, step);
      begin_scores(s, q);
      wait_for_values(held, limits);
      begin_values(o, weights, held);
      if (kLooksAhead && i + 1 < count) ahead = {i + 1, read_step(tile, i + 1, limits)};
      cute::warpgroup_wait<1>();
      wgmma_fence(s);
      const uint32_t missing = missing_pieces();
      if (!kReleasesLate) release(at.k_empty(ring.stage));
      finish_scores(s, step, limits, row, tile.n_tile, missing);
      if (kLooksAhead && ahead.i == i + 1 && uses(ahead.step)) begin_bias_of_step(ahead.step, limits, row);
      raise_top(s, rows, p.scale_log2, headroom);
      exponentiate(s, rows, p.scale_log2);
      if (kReleasesLate) release(at.k_empty(ring.stage));
      cute::warpgroup_wait<0>();
      wgmma_fence(o);
      release(at.v_empty(held.stage));
      round(s, weights);
      if (rows.rescales) rescale(o, rows);
      held = {ring.stage, phase, step};
      ++ring;
    }
  }

  __device__ __forceinline__ void compute(const WorkTile& tile) {
    const Head head(p.args, tile.n_tile);
    const uint32_t q_tile = at.q(q_state.stage) + warpgroup * kUnitBytes;
    const uint64_t q = wgmma_descriptor_a(q_tile);
    const int first_row = tile.m_tile * kAttentionTile + warpgroup * kAttentionUnit + warp * kWarpRows;
    const int row = first_row + lane / 4;
    if constexpr (C::kTerms) {
      set_bias_rows<false>(bias_place(), p.args.general.terms, head.batch, head.q, first_row, lane);
    }
    RowState rows;
    float o[C::kGroups][4] = {};
    uint32_t weights[kDepthSteps][4];
    wait_for_phase(at.q_full(q_state.stage), q_state.phase);

    TileLimits limits;
    if constexpr (C::kGeneral) {
      limits = tile_limits<false>(p.args, tile.m_tile, head.batch);
      limits.share();
    }
    const int count = C::kGeneral && limits.sees_none() ? 0 : tile.entry_count;
    int i = 0;
    do {
      Held held = {};
      find_used(*this, tile, i, count, limits, held.step);
      if (i >= count) break;
      held.stage = ring.stage;
      begin_bias_of_step(held.step, limits, row);
      {
        Scores s;
        held.phase = wait_for_keys(at, ring, held.step);
        begin_scores(s, q);
        cute::warpgroup_wait<0>();
        wgmma_fence(s);
        const uint32_t missing = missing_pieces();
        release(at.k_empty(ring.stage));
        finish_scores(s, held.step, limits, row, tile.n_tile, missing);
        raise_top(s, rows, p.scale_log2, headroom);
        exponentiate(s, rows, p.scale_log2);
        round(s, weights);
        if (C::kGeneral && rows.rescales) rescale(o, rows);
      }
      ++ring;
      ++i;
      add_steps(tile, i, count, limits, q, row, rows, held, weights, o);
      wait_for_values(held, limits);
      begin_values(o, weights, held);
      cute::warpgroup_wait<0>();
      wgmma_fence(o);
      release(at.v_empty(held.stage));
      ++i;
    } while (C::kGeneral && i < count);

    float weight[2], lse[2];
    end_rows(rows, p.scale_log2, weight, lse);
    if constexpr (C::kGeneral) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        // What such a row of q holds may make its weight NaN.
        if (row + 8 * r >= limits.own_end) weight[r] = 0, lse[r] = -INFINITY, zero_row(o, r);
      }
    }
    store_lse(p.args, tile.n_tile, lse, row, lane);
    // The warpgroup's rows of q have been read by all of its warps.
    cutlass::arch::NamedBarrier::sync(128, uint32_t(warpgroup));
    if (C::kGeneral && p.args.general.part_o != nullptr) {
      store_part(p.args, tile.n_tile, o, weight, row, lane);
    } else {
      store_rows<Element>(p.map_o, o, weight, q_tile + warp * kWarpRows * kRowBytes, {first_row, head.q, head.batch},
                          lane);
    }
    if (lane == 0) {
      cute::tma_store_wait<0>();
      arrive_in_cluster<1>(at.q_empty(q_state.stage));
    }
    __syncwarp();
    ++q_state;
  }
};

template <class C>
__device__ void consume(const Params& p, Shared<C>& shared, int warpgroup, int warp, int lane) {
  Consumer<C> consumer{p, {shared_address(&shared)}, warpgroup, warp, lane};
  TilePlace<kTilesAhead> place;
  for (WorkTile tile = shared.tiles.next(place, lane); tile.m_tile != kNoTile; tile = shared.tiles.next(place, lane)) {
    ++place;
    consumer.compute(tile);
  }
}

template <class C>
__global__ void __launch_bounds__(kThreads, 1) attention_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared<C>*>(memory);
  begin(shared);
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  if (warp < kProducers / 32) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if constexpr (C::kPaged) {
      if (warp == 0) produce_pages<C>(p, shared, lane);
    } else {
      if (warp == 0 && cute::elect_one_sync()) produce<C>(p, shared);
    }
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume<C>(p, shared, warp / 4 - 1, warp % 4, lane);
  }
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
