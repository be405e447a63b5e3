// SPDX-License-Identifier: Apache-2.0
// Attention's forward pass in e4m3: the walk of cuda/attention_forward.cuh, with products of bytes.
//
//   s = q k^T            wgmma, both operands in shared memory     (64, 128)
//   p = exp2(s - top)    in registers, up to 2^kLift at the greatest score so far, then rounded to e4m3
//   part += p v          wgmma, p in registers, v transposed       (64, head size)
//   o += part            in registers, after each kPartSteps steps
//
// wgmma adds products of bytes with 13 bits of fraction, and drops what lies below these of the greatest: with 8192
// keys an eighth of the sum. So it adds up no more than 512 keys, and fp32 the rest.
//
// Of a row of s a thread has the columns 8 g + 2 t and the one behind, but of a row of p as an operand it gives 4 t to
// 4 t + 3 of each 16 (t: lane % 4). A sum does not care for the order of its terms: so p stays where it is, and the
// keys of each 16 of the transposed values lie in the order that this gives them (cuda/attention_transpose_values.h).
#pragma once

#include "cuda/attention_e4m3_shared.cuh"
#include "cuda/attention_loads.cuh"
#include "cuda/attention_pieces.cuh"
#include "cuda/attention_softmax.cuh"
#include "cuda/attention_steps.cuh"
#include "cuda/attention_store.cuh"
#include "cuda/wgmma_e4m3.cuh"
#include "cutlass/arch/reg_reconfig.h"
#include "plan/attention_e4m3.h"

namespace sparsek::cuda {
namespace attention_e4m3 {

using namespace attention_forward;

// e4m3 has 448 = 2^8.8 as its largest number and 2^-9 as its smallest. So when `top` moves, the greatest p becomes
// 2^kLift, which later ones may exceed by so little only before it moves again, and p is rounded by up to 2^-10, which
// is 2^-16 of the largest weight. With more lift and less headroom `top` moves more often, which takes longer. Where
// exponents come first, `top` is that of p = 1, else of p = 2^kLift.
constexpr float kLift = kE4m3Lift, kByteHeadroom = 2.75f;
// Steps whose p v wgmma adds up.
constexpr int kPartSteps = kE4m3SumKeys / kAttentionTile;

// A B of zeros: 8 rows of 64 bytes, over and over.
__device__ inline uint64_t zero_rows_descriptor(uint32_t zeros) {
  cute::GmmaDescriptor descriptor;
  descriptor.desc_ = wgmma_descriptor_rows<64>(zeros);
  descriptor.bitfield.stride_byte_offset_ = 0;
  return descriptor.desc_;
}

// What the scores and the values of a tile are multiplied by.
struct TileScales {
  float score_log2;  // of exponents of 2
  float weight;

  __device__ TileScales(const Params& p, const Head& head) {
    const auto factor = [&](const float* of, int heads, int at) {
      return of == nullptr ? 1.f : __ldg(of + int64_t(head.batch) * heads + at);
    };
    const float product =
        p.scale_log2 * factor(p.scales.q, p.args.heads_q, head.q) * factor(p.scales.k, p.args.heads_k, head.k);
    // 0 makes all weights the same. A maximum of scores is none of exponents where the factor is negative.
    score_log2 = fmaxf(product, 0x1p-100f);
    weight = product >= 0 ? factor(p.scales.v, p.args.heads_k, head.k) : NAN;
  }
};

template <class C>
struct Consumer {
  using Element = typename C::Element;
  using Output = typename C::Output;
  static constexpr int kDepthSteps = C::kStepRows / 32;  // of p v
  static constexpr int kDepthStepsOfUnit = kAttentionUnit / 32;
  // Whether scores become exponents before their maximum is found. With heads of 64 columns that was slower
  // (docs/notes/attention-fp8.md).
  static constexpr bool kExponentsFirst = C::kHeadSize > 64;
  // When a step's keys are released. They have been read by then in each case; what is fastest is kept
  // (docs/notes/attention-fp8.md).
  enum class Release { kWhenRead, kAfterWeights, kAfterValues };
  static constexpr Release kRelease = C::kHeadSize <= 64 ? Release::kAfterValues
                                      : C::kGeneral      ? Release::kWhenRead
                                                         : Release::kAfterWeights;
  using Scores = float[C::kStepRows / 8][4];
  using Weights = uint32_t[kDepthSteps][4];
  using Sums = float[C::kGroups][4];
  struct Held {  // a step whose values are to be multiplied
    int stage;
    uint32_t phase;  // of the stage's barriers
    AttentionStep step;
  };

  const Params& p;
  const Addresses<C> at;
  const int warpgroup, warp, lane;  // warp: of the warpgroup
  const uint32_t use = warpgroup == 0 ? kFirstUses : kSecondUses;
  const uint64_t k_descriptor = wgmma_descriptor_rows<C::kHeadSize>(at.k(0)),
                 v_descriptor = wgmma_descriptor_rows<kAttentionUnit>(at.v(0)),
                 zeros = zero_rows_descriptor(at.zeros());
  StageReader<C::kStages> ring;
  RingState<C::kQueryStages> q_state;

  __device__ bool uses(const AttentionStep& step) const { return ((step.unit[0] | step.unit[1]) & use) != 0; }
  __device__ bool hides(const AttentionStep& step) const {
    return ((step.unit[0] | step.unit[1]) & kPartialUnit) != 0 || (step.unit[0] & step.unit[1] & use) == 0;
  }

  __device__ AttentionStep read_step(const WorkTile& tile, int i, const TileLimits& limits) const {
    return read_units<C>(p, tile, i, limits);
  }
  // Whether nothing of a step is left, so that it has no stage.
  __device__ static bool is_cut_off(const AttentionStep& step) { return C::kGeneral && uses_of(step) == 0; }
  __device__ void release(uint32_t barrier) const {
    if (lane == 0) arrive_in_cluster<1>(barrier);
  }

  // Begins s = q k^T.
  __device__ void begin_scores(Scores& s, uint64_t q) const {
    const uint64_t k = advanced(k_descriptor, ring.stage * C::kStepBytes);
    wgmma_fence(s);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < C::kHeadSize / 32; ++step) {
      wgmma_ss<Element, Major::K>(s, advanced(q, step * 32), advanced(k, step * 32), step > 0);
    }
    cute::warpgroup_commit_batch();
  }

  // Begins part += p v, or = where it does not add. What a unit that the warpgroup does not use has in v is not
  // multiplied, since it may be NaN.
  __device__ void begin_values(Sums& part, const Weights& weights, const Held& held, bool adds) const {
    const uint64_t v = advanced(v_descriptor, held.stage * C::kStepBytes);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
      const int unit = step / kDepthStepsOfUnit;
      const uint64_t own = advanced(v, unit * C::kUnitBytes + step % kDepthStepsOfUnit * 32);
      wgmma_rs<Element, Major::K>(part, weights[step], (held.step.unit[unit] & use) != 0 ? own : zeros,
                                  step > 0 || adds);
    }
    cute::warpgroup_commit_batch();
  }

  __device__ void wait_for_values(const Held& held) const {
    wait_for_phase(at.v_full(full_place<C::kStages>(uses_of(held.step), held.stage)), held.phase);
  }

  // Makes scores weights, and moves what these refer to.
  __device__ void finish_scores(Scores& s, const AttentionStep& step, const TileLimits& limits, int row, RowState& rows,
                                float scale) const {
    if (hides(step)) {
      const SeenKeys seen = C::kGeneral ? SeenKeys{limits.low, limits.high, limits.met_end}
                                        : SeenKeys{p.args.low, p.args.high, p.args.seq_k};
      hide(s, step, use, row, lane, seen);
    }
    if constexpr (kExponentsFirst) {
      make_weights(s, rows, scale, {kLift, kLift + kByteHeadroom});
    } else {
      raise_top(s, rows, scale, kByteHeadroom / scale);
      exponentiate(s, rows, scale);
    }
  }

  // As attention_forward::exponentiate, times 2^kLift.
  __device__ static void exponentiate(Scores& s, RowState& rows, float scale) {
    float bias[2], sum[2] = {0, 0};
#pragma unroll
    for (int r = 0; r < 2; ++r) bias[r] = rows.top[r] == -INFINITY ? 0.f : fmaf(-rows.top[r], scale, kLift);
#pragma unroll
    for (int g = 0; g < C::kStepRows / 8; ++g) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        s[g][e] = exp2_of(fmaf(s[g][e], scale, bias[e / 2]));
        sum[e / 2] += s[g][e];
      }
    }
    rows.sum[0] += sum[0];
    rows.sum[1] += sum[1];
  }

  __device__ static void add(Sums& o, const Sums& part) {
#pragma unroll
    for (int g = 0; g < C::kGroups; ++g) {
#pragma unroll
      for (int e = 0; e < 4; ++e) o[g][e] += part[g][e];
    }
  }

  // Register i of an operand has row i % 2 of the thread's, and of the 32 keys those of two groups of 8.
  __device__ static void round(const Scores& s, Weights& weights) {
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&a)[4] = s[step * 4 + i / 2 * 2];
        const float(&b)[4] = s[step * 4 + i / 2 * 2 + 1];
        const int r = i % 2 * 2;
        weights[step][i] = pack_e4m3(a[r], a[r + 1], b[r], b[r + 1]);
      }
    }
  }

  // The steps from i on, behind one that this warpgroup uses. summed: the steps of which `part` has the sums.
  __device__ __forceinline__ void add_steps(const WorkTile& tile, int& i, int count, const TileLimits& limits,
                                            uint64_t q, int row, float scale, RowState& rows, Held& held,
                                            Weights& weights, Sums& o, Sums& part, int& summed) {
    int unused = 0;  // steps that follow each other
    for (; i < count; ++i) {
      const AttentionStep step = read_step(tile, i, limits);
      if (is_cut_off(step)) continue;
      if (!uses(step)) {
        ++ring;
        if (C::kGeneral && ++unused == 2) return;
        continue;
      }
      unused = 0;
      Scores s;
      const uint32_t phase = wait_for_keys(at, ring, step);
      begin_scores(s, q);
      wait_for_values(held);
      begin_values(part, weights, held, summed > 0);
      cute::warpgroup_wait<1>();
      wgmma_fence(s);
      if (kRelease == Release::kWhenRead) release(at.k_empty(ring.stage));
      finish_scores(s, step, limits, row, rows, scale);
      if (kRelease == Release::kAfterWeights) release(at.k_empty(ring.stage));
      cute::warpgroup_wait<0>();
      wgmma_fence(part);
      release(at.v_empty(held.stage));
      if (kRelease == Release::kAfterValues) release(at.k_empty(ring.stage));
      round(s, weights);
      if (++summed == kPartSteps) add(o, part), summed = 0;
      if (rows.rescales) rescale(o, rows), rescale(part, rows);
      held = {ring.stage, phase, step};
      ++ring;
    }
  }

  __device__ __forceinline__ void compute(const WorkTile& tile, uint32_t o_at) {
    const Head head(p.args, tile.n_tile);
    const float scale = TileScales(p, head).score_log2;
    const uint64_t q = wgmma_descriptor_rows<C::kHeadSize>(at.q(q_state.stage) + warpgroup * C::kUnitBytes);
    const int first_row = tile.m_tile * kAttentionTile + warpgroup * kAttentionUnit + warp * kWarpRows;
    const int row = first_row + lane / 4;
    RowState rows;
    Sums o = {};
    Weights weights;
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
      {
        Scores s;
        held.phase = wait_for_keys(at, ring, held.step);
        begin_scores(s, q);
        cute::warpgroup_wait<0>();
        wgmma_fence(s);
        release(at.k_empty(ring.stage));
        finish_scores(s, held.step, limits, row, rows, scale);
        round(s, weights);
        if (C::kGeneral && rows.rescales) rescale(o, rows);
      }
      ++ring;
      ++i;
      Sums part = {};
      int summed = 0;
      add_steps(tile, i, count, limits, q, row, scale, rows, held, weights, o, part, summed);
      wait_for_values(held);
      begin_values(part, weights, held, summed > 0);
      cute::warpgroup_wait<0>();
      wgmma_fence(part);
      add(o, part);
      release(at.v_empty(held.stage));
      ++i;
    } while (C::kGeneral && i < count);
    release(at.q_empty(q_state.stage));
    ++q_state;

    // Reckoned again, so that the steps have these registers.
    int n_tile = tile.n_tile;
    asm volatile("" : "+r"(n_tile));
    const Head own(p.args, n_tile);
    const float of_values = TileScales(p, own).weight;
    float weight[2], lse[2];
    end_rows(rows, kExponentsFirst ? 1 : scale, weight, lse);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      constexpr float kLogOf2 = 0.693147180559945309f;
      weight[r] *= of_values;
      if (!kExponentsFirst) lse[r] -= kLift * kLogOf2;  // else `top` is that much lower
      if (C::kGeneral && row + 8 * r >= limits.own_end) weight[r] = 0, lse[r] = -INFINITY, zero_row(o, r);
    }
    store(tile, own, first_row, o, weight, lse, o_at + (warpgroup * kAttentionUnit + warp * kWarpRows) * kRowBytes);
  }

  // o_at: of the warp's rows in shared memory.
  __device__ __forceinline__ void store(const WorkTile& tile, const Head& head, int first_row, const Sums& o,
                                        const float (&weight)[2], const float (&lse)[2], uint32_t o_at) const {
    const int row = first_row + lane / 4;
    store_lse(p.args, tile.n_tile, lse, row, lane);
    if (C::kGeneral && p.args.general.part_o != nullptr) {
      store_part(p.args, tile.n_tile, o, weight, row, lane);
      return;
    }
    if (lane == 0) cute::tma_store_wait<0>();  // of the tile before
    __syncwarp();
    store_rows<Output>(p.map_o, o, weight, o_at, {first_row, head.q, head.batch}, lane);
  }
};

template <class C>
__device__ void consume(const Params& p, Memory<C>& memory, int warpgroup, int warp, int lane) {
  Consumer<C> consumer{p, {shared_address(&memory.shared)}, warpgroup, warp, lane};
  auto& tiles = memory.shared.tiles;
  TilePlace<kTilesAhead> place;
  for (WorkTile tile = tiles.next(place, lane); tile.m_tile != kNoTile; tile = tiles.next(place, lane)) {
    ++place;
    consumer.compute(tile, consumer.at.base + offsetof(Memory<C>, o));
  }
  if (lane == 0) cute::tma_store_wait<0>();
}

template <class C>
__global__ void __launch_bounds__(kThreads, 1) attention_e4m3_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t bytes[];
  auto& memory = *reinterpret_cast<Memory<C>*>(bytes);
  begin(memory.shared);
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  if (warp < kProducers / 32) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if (warp == 0 && cute::elect_one_sync()) produce<C>(p, memory.shared);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume<C>(p, memory, warp / 4 - 1, warp % 4, lane);
  }
}

}  // namespace attention_e4m3
}  // namespace sparsek::cuda
