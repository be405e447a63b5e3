// SPDX-License-Identifier: Apache-2.0
// Attention's backward pass: two kernels of one form. A CTA takes tiles of 128 rows, its own, of which each of two
// warpgroups has 64: queries, or keys. One thread loads them, and the rows that they meet step by step
// (cuda/attention_gradient_loads.cuh). Per step and warpgroup, with own rows x, y = q, grad_o or k, v, and met rows
// x', y' of the other kind:
//
//   s = x x'^T, t = y y'^T            wgmma, both operands in shared memory           (64, 64)
//   p = exp2(s - lse)                 in registers, while t is computed
//   grad_y += p y'                    wgmma, p in registers, where own rows are keys  (64, head size)
//   ds = p (t - delta)                in registers, while grad_y is computed
//   grad_x += ds x'                   wgmma, ds in registers                          (64, head size)
//
// Of kernels with a bias, warps copy that of a step to shared memory as soon as they have read that of the step before,
// or before they wait for the step's rows (cuda/attention_bias_tile.cuh).
//
// A stage is released when s of the next step is there, since products end in the order in which they are begun. In
// general kernels, which cut steps off (cuda/attention_pieces.cuh), also before a second step that is not used, or a
// first one where there are two stages.
#pragma once

#include <type_traits>

#include "cuda/attention_bias_tile.cuh"
#include "cuda/attention_gradient_loads.cuh"
#include "cuda/attention_mass_cells.cuh"
#include "cuda/attention_softmax.cuh"
#include "cuda/attention_store.cuh"
#include "cuda/attention_terms.cuh"
#include "cuda/wgmma_registers.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace attention_gradient {

using attention_forward::BiasPlace;
using attention_forward::BiasReader;
using attention_forward::exp2_of;
using attention_forward::kWarpRows;
using attention_forward::met_run;

template <class C>
__device__ void store(const CUtensorMap& map, const float (&sums)[C::kGroups][4], float factor, uint32_t buffer,
                      int row, const Heads<C>& heads, int lane) {
  const float factors[2] = {factor, factor};
  attention_forward::store_rows<typename C::Element>(map, sums, factors, buffer, {row, heads.own, heads.batch}, lane);
}

template <class C>
struct Consumer {
  using Element = typename C::Element;
  using Sums = float[C::kGroups][4];
  static constexpr int kDepthSteps = C::kMetRows / 16;  // of p y'
  static constexpr int kScoreGroups = C::kMetRows / 8;
  using Scores = float[kScoreGroups][4];
  using Weights = uint32_t[kDepthSteps][4];  // rounded scores, as operands
  static constexpr bool kHasSlopes = C::kTerms && !C::kOfKeys;
  using Pieces = PieceStep<C::kMetRows / kAttentionPiece>;
  using Step = std::conditional_t<C::kPieces, Pieces, AttentionStep>;
  // Steps that follow each other and are not used, before which a stage is released: the next one would need it.
  static constexpr int kUnused = C::kStages > 2 ? 2 : 1;
  // Whether a step is read, and its bias copied, as soon as the bias of the step before has been read. Others, whose
  // sums take more registers, begin a step's copies before they wait for the sums of the step before.
  static constexpr bool kLooksAhead = C::kTerms && C::kGroups * (int{C::kOfX} + int{C::kOfY}) <= 16;
  struct Ahead {  // the step that has been read so
    int i = -1;
    Step step;
  };

  const Params& p;
  const Addresses<C> at;
  const int warpgroup, warp, lane;  // warp: of the warpgroup
  const uint32_t use = warpgroup == 0 ? kFirstUses : kSecondUses;
  const uint64_t own_x = wgmma_descriptor_a(at.own_x() + warpgroup * kUnitBytes),
                 own_y = wgmma_descriptor_a(at.own_y() + warpgroup * kUnitBytes),
                 met_x = wgmma_descriptor_a(at.met_x(0)), met_y = wgmma_descriptor_a(at.met_y(0)),
                 met_x_across = wgmma_descriptor_b(at.met_x(0), C::kMetChunkBytes),
                 met_y_across = wgmma_descriptor_b(at.met_y(0), C::kMetChunkBytes);
  // Own row i meets rows i + low up to i + high, below the end.
  const int low = C::kOfKeys ? -p.args.high : p.args.low, high = C::kOfKeys ? -p.args.low : p.args.high;
  const int met_end = C::kOfKeys ? p.args.seq_q : p.args.seq_k;
  StageReader<C::kStages> ring;
  uint32_t own_phase = 0;

  // Step i of a tile. Both words are the same in all lanes, and the compiler knows it.
  __device__ Step read_step(const WorkTile& tile, int i, const TileLimits& limits) const {
    if constexpr (C::kPieces) {
      Step step(p.args.general.pieces + tile.entry_begin + i, limits);
      step.share();
      return step;
    } else {
      const uint32_t unit = __shfl_sync(0xffffffffu, __ldg(&p.args.steps[tile.entry_begin + i].unit[0]), 0);
      uint32_t head = 0;  // of queries that are met, see query_head
      if constexpr (C::kTerms && C::kOfKeys) head = __ldg(&p.args.steps[tile.entry_begin + i].unit[1]);
      return {{C::kGeneral ? cut_unit(unit, limits) : unit, head}};
    }
  }
  __device__ Step read_step(const WorkTile& tile, int i, const TileLimits& limits, const Ahead& ahead) const {
    if constexpr (kLooksAhead) {
      if (ahead.i == i) return ahead.step;
    }
    return read_step(tile, i, limits);
  }
  __device__ bool uses(const AttentionStep& step) const { return (step.unit[0] & use) != 0; }
  __device__ bool uses(const Pieces& step) const { return step.is_used_by(warpgroup); }
  // Whether nothing of a step is left, so that it has no stage.
  __device__ static bool is_cut_off(const Step& step) { return C::kGeneral && Loader<C>::uses_of(step) == 0; }
  __device__ void release(uint32_t barrier) const {
    if (lane == 0) arrive_in_cluster<1>(barrier);
  }

  // Begins scores = own met^T.
  __device__ void begin_scores(Scores& scores, uint64_t own, uint64_t met) const {
    wgmma_fence(scores);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < C::kHeadSize / 16; ++step) {
      const int chunk = step / 4, column = step % 4 * 32;
      wgmma_ss<Element, Major::K>(scores, advanced(own, chunk * kChunkBytes + column),
                                  advanced(met, chunk * C::kMetChunkBytes + column), step > 0);
    }
    cute::warpgroup_commit_batch();
  }

  // Begins sums += weights met.
  __device__ void begin_sums(Sums& sums, const Weights& weights, uint64_t met) const {
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
      wgmma_rs<Element>(sums, weights[step], advanced(met, step * 16 * kRowBytes));
    }
    cute::warpgroup_commit_batch();
  }

  __device__ static void round(const Scores& s, Weights& weights) {
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&of)[4] = s[step * 2 + i / 2];
        weights[step][i] = pack<Element>(of[i % 2 * 2], of[i % 2 * 2 + 1]);
      }
    }
  }

  // Sets scores of pairs that do not see each other to -inf. row: the thread's first.
  __device__ void hide(Scores& s, const AttentionStep& step, int row, int low, int high, int met_end) const {
    const int first = int(step.unit[0] & kUnitNumber) * kAttentionUnit + 2 * (lane % 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int away = first - (row + 8 * r);  // met - own, of the thread's first column
      const int least = low - away, most = min(high - away, met_end - 1 - first);
#pragma unroll
      for (int g = 0; g < kScoreGroups; ++g) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (g * 8 + e < least || g * 8 + e > most) s[g][r * 2 + e] = -INFINITY;
        }
      }
    }
  }

  __device__ uint32_t row_bit() const { return 1u << (4 * warpgroup + warp); }
  __device__ bool hides(const AttentionStep& step) const { return (step.unit[0] & kPartialUnit) != 0; }
  __device__ bool hides(const Pieces& step) const { return (step.whole & row_bit()) == 0; }
  __device__ void hide_what_is_cut(Scores& s, const Step& step, const TileLimits& limits, int row) const {
    if (!hides(step)) return;
    if constexpr (C::kPieces) {
      hide_pieces(s, step, limits, row_bit(), row, lane);
    } else {
      hide(s, step, row, limits.low, limits.high, limits.met_end);
    }
  }

  __device__ static bool meets_end(const Step& step, const TileLimits& limits) {
    if constexpr (C::kPieces) {
      return step.has_end;
    } else {
      return has_end(step.unit[0], limits.met_end);
    }
  }

  __device__ void zero_end_of(uint32_t met, const Step& step, const TileLimits& limits) const {
    const int thread = warp * 32 + lane;
    if constexpr (C::kPieces) {
      zero_ends<C::kChunks>(met, C::kMetChunkBytes, step, limits.met_end, thread);
    } else {
      zero_ends<C::kChunks>(met, C::kMetChunkBytes, step.unit[0], 0, limits.met_end, thread);
    }
  }

  // What is met beyond a length becomes zeros, since what it is multiplied by is 0.
  __device__ void zero_met(const Step& step, const TileLimits& limits, int stage) const {
    zero_end_of(at.met_x(stage), step, limits);
    zero_end_of(at.met_y(stage), step, limits);
    end_zeros(warpgroup);
  }

  // The head of a step's queries, counted from the first that the tile meets.
  __device__ static int query_head(const AttentionStep& step) { return int(step.unit[1]); }
  __device__ static int query_head(const Pieces& step) { return int(step.head); }

  __device__ BiasPlace bias_place() const {
    return {at.bias_tile(4 * warpgroup + warp), at.bias_rows(4 * warpgroup + warp)};
  }
  // Begins to copy the bias of what the warp meets of a step. row: the thread's first.
  __device__ void begin_bias_of_step(const Step& step, const TileLimits& limits, int row) const {
    if constexpr (C::kTerms) {
      const AttentionTerms& terms = p.args.general.terms;
      if (terms.bias == nullptr) return;
      attention_forward::begin_bias<C::kOfKeys, C::kMetRows>(
          bias_place(), terms, query_head(step), limits.own_end - (row - lane / 4), lane,
          [&](uint32_t met) { return met_run(step, met, limits.met_end, C::kPieces ? row_bit() : use); });
    }
  }

  // Hides pairs that have no bit, and calls run with what is added to the scores of a step.
  template <class Run>
  __device__ void with_terms(Scores& s, const WorkTile& tile, const Step& step, const TileLimits& limits, int row,
                             const Run& run) const {
    if constexpr (C::kTerms) {
      const AttentionTerms& terms = p.args.general.terms;
      if (terms.mask != nullptr) {
        const Heads<C> heads(p.args, tile.n_tile);
        const int head = C::kOfKeys ? heads.met + query_head(step) : heads.own;
        mask_scores<C::kOfKeys>(s, terms, step, limits, heads.batch, head, p.args.heads_q, row - lane / 4, lane);
      }
      if (terms.bias != nullptr) {
        const uint32_t from = bias_place().tile;
        const bool has_hidden = hides(step) || terms.mask != nullptr;
        attention_forward::end_bias();
        const auto run_with = [&](auto element) {
          using Reader = BiasReader<decltype(element), C::kOfKeys, C::kMetRows>;
          run(StepBias<Reader>{Reader(from, lane), has_hidden});
        };
        return terms.is_float ? run_with(float()) : run_with(Element());
      }
    }
    run(NoBias());
  }

  // Of general kernels: weights = exp2(scores + bias) where own rows are keys, and s = these times what dS has of them,
  // (1 - tanh^2) where scores are capped; where the gradient of a bias may be asked for that is left to slopes.
  template <class Bias>
  __device__ void exponentiate_capped(Scores& s, Scores& slopes, Weights& weights, const RowPair& own,
                                      uint32_t met_rows, const Step& step, const Bias& bias) const {
    const bool capped = p.cap_log2 > 0;
    float bias_of[2][4];
#pragma unroll
    for (int g = 0; g < kScoreGroups; ++g) {
      const RowPair rows = C::kOfKeys ? load_row_pair(met_rows + g * 8 * sizeof(RowSums)) : own;
      float weight[4], of_row[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) of_row[e] = rows.bias[C::kOfKeys ? e % 2 : e / 2];
      add_bias_to_exponents(of_row, bias, s, bias_of, g);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float x = s[g][e], slope = capped ? fmaf(-fmaxf(x, -1.f), fmaxf(x, -1.f), 1.f) : 1.f;
        weight[e] = exp2_of(fmaf(x, p.scale_log2, of_row[e]));
        s[g][e] = kHasSlopes ? weight[e] : weight[e] * slope;
        if constexpr (kHasSlopes) slopes[g][e] = slope;
      }
      if constexpr (C::kOfY) {
        weights[g / 2][g % 2 * 2] = pack<Element>(weight[0], weight[1]);
        weights[g / 2][g % 2 * 2 + 1] = pack<Element>(weight[2], weight[3]);
      }
    }
  }

  // s = exp2(scores + bias).
  template <class Bias>
  __device__ void exponentiate(Scores& s, const RowPair& own, uint32_t met_rows, const Step& step,
                               const Bias& bias) const {
    float bias_of[2][4];
#pragma unroll
    for (int g = 0; g < kScoreGroups; ++g) {
      const RowPair rows = C::kOfKeys ? load_row_pair(met_rows + g * 8 * sizeof(RowSums)) : own;
      float of_row[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) of_row[e] = rows.bias[C::kOfKeys ? e % 2 : e / 2];
      add_bias_to_exponents(of_row, bias, s, bias_of, g);
#pragma unroll
      for (int e = 0; e < 4; ++e) s[g][e] = exp2_of(fmaf(s[g][e], p.scale_log2, of_row[e]));
    }
  }

  // t = s (t - delta).
  __device__ void differentiate(const Scores& s, Scores& t, const RowPair& own, uint32_t met_rows) const {
#pragma unroll
    for (int g = 0; g < kScoreGroups; ++g) {
      const RowPair rows = C::kOfKeys ? load_row_pair(met_rows + g * 8 * sizeof(RowSums)) : own;
#pragma unroll
      for (int e = 0; e < 4; ++e) t[g][e] = s[g][e] * (t[g][e] - rows.delta[C::kOfKeys ? e % 2 : e / 2]);
    }
  }

  // Of t = dS before the derivative of the soft cap: writes it where it is asked for, and multiplies
  // it by the slopes.
  __device__ void end_gradients(Scores& t, const Scores& s, const Scores& slopes, const WorkTile& tile,
                                const Step& step, const TileLimits& limits, int row) const {
    float* const grad_bias = p.args.general.terms.grad_bias;
    if (grad_bias != nullptr) {
      float* const first = grad_bias + (int64_t(tile.n_tile) * p.args.seq_q + row) * p.args.seq_k;
      write_grad_bias(t, s, {first, p.args.seq_k, row, limits.own_end}, step, limits.met_end, lane);
    }
    if (p.cap_log2 <= 0) return;
#pragma unroll
    for (int g = 0; g < kScoreGroups; ++g) {
#pragma unroll
      for (int e = 0; e < 4; ++e) t[g][e] *= slopes[g][e];
    }
  }

  __device__ RowPair own_rows(const Heads<C>& heads, int row) const {
    RowPair own = {};
    if constexpr (C::kOfMass) {
      constexpr float kLog2OfE = 1.4426950408889634f;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int at = row + 8 * r;
        const float* const lse = p.args.mass.lse + (int64_t(heads.batch) * p.args.heads_q + heads.own) * p.args.seq_q;
        const float of_row = at < p.args.seq_q ? __ldg(lse + at) : -INFINITY;
        own.bias[r] = of_row == -INFINITY ? -INFINITY : -of_row * kLog2OfE;
      }
    } else if constexpr (!C::kOfKeys) {
      const RowSums* const from =
          p.args.rows + (int64_t(heads.batch) * p.args.heads_q + heads.own) * p.args.padded + row;
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float2 words = __ldg(reinterpret_cast<const float2*>(from + 8 * r));
        own.bias[r] = words.x;
        own.delta[r] = words.y;
      }
    }
    return own;
  }

  // The steps from i on.
  __device__ __forceinline__ void add_steps(const WorkTile& tile, int& i, int count, const TileLimits& limits, int row,
                                            const RowPair& own, Sums& sums_x, Sums& sums_y) {
    Weights weights, gradients;
    int held = -1;   // the stage of the last step
    int unused = 0;  // steps that follow each other
    Ahead ahead;
    for (; i < count; ++i) {
      const Step step = read_step(tile, i, limits, ahead);
      if (is_cut_off(step)) continue;
      if (!uses(step)) {
        ++ring;
        if (C::kGeneral && ++unused == kUnused) break;
        continue;
      }
      unused = 0;
      if (ahead.i != i) begin_bias_of_step(step, limits, row);
      const int stage = ring.stage, place = full_place<C::kStages>(Loader<C>::uses_of(step), stage);
      const uint32_t at_stage = stage * C::kMetBytes;
      const uint32_t met_rows = at.rows(stage) + 2 * (lane % 4) * sizeof(RowSums);
      Scores s, t, slopes;
      wait_for_phase(at.met_full(place), ring.take_phase(place));
      if constexpr (C::kGeneral) {
        if (!C::kOfMass && meets_end(step, limits)) zero_met(step, limits, stage);
      }
      // Registers do not suffice for new scores while both sums are computed.
      if constexpr (C::kOfX && C::kOfY && C::kHeadSize > 64) cute::warpgroup_wait<0>();
      begin_scores(s, own_x, advanced(met_x, at_stage));
      if constexpr (C::kOfX) begin_scores(t, own_y, advanced(met_y, at_stage));
      if (kLooksAhead && i + 1 < count) ahead = {i + 1, read_step(tile, i + 1, limits)};
      cute::warpgroup_wait<C::kOfX ? 1 : 0>();
      wgmma_fence(s);
      if (held >= 0) release(at.met_empty(held));
      held = stage;
      if constexpr (C::kOfMass) held = -1, release(at.met_empty(stage));
      if constexpr (C::kGeneral) {
        if (p.cap_log2 > 0) cap_scores(s, p.cap_log2);
        hide_what_is_cut(s, step, limits, row);
        with_terms(s, tile, step, limits, row, [&](const auto& bias) {
          if constexpr (C::kOfMass) {
            exponentiate(s, own, met_rows, step, bias);
          } else {
            exponentiate_capped(s, slopes, weights, own, met_rows, step, bias);
          }
        });
        if (kLooksAhead && ahead.i == i + 1 && uses(ahead.step)) begin_bias_of_step(ahead.step, limits, row);
        if constexpr (C::kOfMass) write_mass<C>(p.args, s, step, tile, {row, limits.own_end, warpgroup, warp, lane});
      } else {
        if ((step.unit[0] & kPartialUnit) != 0) hide(s, step, row, low, high, met_end);
        exponentiate(s, own, met_rows, step, NoBias());
      }
      if constexpr (C::kOfY) {
        if constexpr (!C::kGeneral) round(s, weights);
        begin_sums(sums_y, weights, advanced(met_y_across, at_stage));
      }
      if constexpr (C::kOfX) {
        cute::warpgroup_wait<C::kOfY ? 1 : 0>();
        wgmma_fence(t);
        differentiate(s, t, own, met_rows);
        if constexpr (kHasSlopes) end_gradients(t, s, slopes, tile, step, limits, row);
        round(t, gradients);
        begin_sums(sums_x, gradients, advanced(met_x_across, at_stage));
      }
      ++ring;
    }
    cute::warpgroup_wait<0>();
    if constexpr (C::kOfX) wgmma_fence(sums_x);
    if constexpr (C::kOfY) wgmma_fence(sums_y);
    if (held >= 0) release(at.met_empty(held));
  }

  __device__ __forceinline__ void compute(const WorkTile& tile) {
    const Heads<C> heads(p.args, tile.n_tile);
    const int first_row = tile.m_tile * kAttentionTile + warpgroup * kAttentionUnit + warp * kWarpRows;
    const int row = first_row + lane / 4;
    const RowPair own = own_rows(heads, row);
    if constexpr (C::kTerms) {
      attention_forward::set_bias_rows<C::kOfKeys>(bias_place(), p.args.general.terms, heads.batch,
                                                   C::kOfKeys ? heads.met : heads.own, first_row, lane);
    }
    Sums sums_x = {}, sums_y = {};
    wait_for_phase(at.own_full(), own_phase);
    own_phase ^= 1;
    TileLimits limits;
    if constexpr (C::kGeneral) {
      limits = tile_limits<C::kOfKeys>(p.args, tile.m_tile, heads.batch);
      limits.share();
    }
    const int count = C::kGeneral && limits.sees_none() ? 0 : tile.entry_count;
    int i = 0;
    do {
      add_steps(tile, i, count, limits, row, own, sums_x, sums_y);
      ++i;
    } while (C::kGeneral && i < count);
    if constexpr (C::kGeneral) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (row + 8 * r < limits.own_end) continue;
        zero_row(sums_x, r);
        zero_row(sums_y, r);
      }
    }
    // The warpgroup's own rows have been read by all of its warps.
    cutlass::arch::NamedBarrier::sync(128, uint32_t(warpgroup));
    const uint32_t buffer = warpgroup * kUnitBytes + warp * kWarpRows * kRowBytes;
    if (C::kOfX && p.args.grad_x != nullptr)
      store<C>(p.grad_x, sums_x, p.args.scale, at.own_x() + buffer, first_row, heads, lane);
    if constexpr (C::kOfY) {
      if (p.args.grad_y != nullptr) store<C>(p.grad_y, sums_y, 1.f, at.own_y() + buffer, first_row, heads, lane);
    }
    if (lane == 0) {
      cute::tma_store_wait<0>();
      arrive_in_cluster<1>(at.own_empty());
    }
    __syncwarp();
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
__global__ void __launch_bounds__(kThreads, 1) gradient_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared<C>*>(memory);
  if (threadIdx.x == 0) {
    cute::initialize_barrier(shared.own_full, 1);
    cute::initialize_barrier(shared.own_empty, kConsumerWarps);
    for (uint64_t& full : shared.met_full) cute::initialize_barrier(full, 1);
    for (uint64_t& empty : shared.met_empty) cute::initialize_barrier(empty, kConsumerWarps);
    shared.tiles.init(kConsumerWarps);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  if (warp < kProducers / 32) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if (warp == 0 && cute::elect_one_sync()) produce<C>(p, shared);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume<C>(p, shared, warp / 4 - 1, warp % 4, lane);
  }
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
