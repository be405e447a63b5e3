// SPDX-License-Identifier: Apache-2.0
// Attention's forward pass for heads of 64 columns and many tiles: the walk of cuda/attention_forward.cuh with two
// pairs of warpgroups in a CTA. Each pair takes tiles of its own, and has its own stages and a thread that fills them.
//
// Such heads have as many exponentials as heads of 128 columns, and half the products. With two warpgroups, what a
// warpgroup does between its products takes most of the time: each scheduler has two warps, which wait for most of
// their instructions. With four it has twice as many. For that a warpgroup has half as many registers, so it goes unit
// by unit of 64 keys:
//
//   s = q k^T          wgmma, both operands in shared memory   (64, 64)
//   p = exp2(s - top)  in registers                            cuda/attention_softmax.cuh
//   o += p v           wgmma, p in registers                   (64, 64), under way while the next s begins
#pragma once

#include "cuda/attention_loads.cuh"
#include "cuda/attention_softmax.cuh"
#include "cuda/attention_steps.cuh"
#include "cuda/attention_store.cuh"
#include "cuda/launch.cuh"
#include "cuda/wgmma_registers.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace attention_forward {

constexpr int kPairs = 2, kPairThreads = kProducers + kPairs * kConsumerWarps * 32;
// All that 640 threads are launched with, 96 each.
constexpr int kPairProducerRegisters = 32, kPairConsumerRegisters = 112;

template <class Element>
struct PairConfig : Config<Element, 64> {
  static constexpr int kStages = 3, kQueryStages = 1;
  static constexpr int kZeroBytes = 0;  // units that are not used are not multiplied
};

template <class C>
struct PairShared {
  Shared<C> pair[kPairs];
};

template <class C>
struct PairConsumer {
  using Element = typename C::Element;
  // A warpgroup waits for the values of a step while it holds those of its last one, which may lie two steps before.
  static_assert(C::kStages > 2);
  static constexpr int kUnitSteps = kAttentionUnit / 16;  // of p v
  using Scores = float[kAttentionUnit / 8][4];
  using Weights = uint32_t[kUnitSteps][4];
  using Sums = float[C::kGroups][4];
  static constexpr int kNone = -1;

  const Params& p;
  const Addresses<C> at;
  const int warpgroup, warp, lane;  // warpgroup: of the pair; warp: of the warpgroup
  const uint32_t barrier;           // named, of the warpgroup
  const uint32_t use = warpgroup == 0 ? kFirstUses : kSecondUses;
  const uint64_t k_descriptor = wgmma_descriptor_a(at.k(0)),
                 v_descriptor = wgmma_descriptor_b(at.v(0), C::kStepChunkBytes);
  StageReader<C::kStages> ring;
  RingState<C::kQueryStages> q_state;

  __device__ void release(uint32_t barrier_at) const {
    if (lane == 0) arrive_in_cluster<1>(barrier_at);
  }
  __device__ uint32_t unit_offset(int unit) const { return ring.stage * C::kStepBytes + unit * kUnitBytes; }

  // Begins s = q k^T of a unit of the step at the ring's stage.
  __device__ void begin_scores(Scores& s, uint64_t q, int unit) const {
    const uint64_t k = advanced(k_descriptor, unit_offset(unit));
    wgmma_fence(s);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < C::kHeadSize / 16; ++step) {
      wgmma_ss<Element, Major::K>(s, advanced(q, step * 32), advanced(k, step * 32), step > 0);
    }
    cute::warpgroup_commit_batch();
  }

  // Begins o += p v of that unit.
  __device__ void begin_values(Sums& o, const Weights& weights, int unit) const {
    const uint64_t v = advanced(v_descriptor, unit_offset(unit));
    wgmma_fence(o);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
      wgmma_rs<Element>(o, weights[step], advanced(v, step * 16 * kRowBytes));
    }
    cute::warpgroup_commit_batch();
  }

  __device__ static void round(const Scores& s, Weights& weights) {
#pragma unroll
    for (int step = 0; step < kUnitSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&of)[4] = s[step * 2 + i / 2];
        weights[step][i] = pack<Element>(of[i % 2 * 2], of[i % 2 * 2 + 1]);
      }
    }
  }

  // A step that the warpgroup uses. held: the stage whose values are still being multiplied.
  __device__ __forceinline__ void add_step(const AttentionStep& step, uint64_t q, int row, RowState& rows, int& held,
                                           Weights& weights, Sums& o) {
    const uint32_t phase = wait_for_keys(at, ring, step);
    bool has_values = false;
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      if ((step.unit[u] & use) == 0) continue;
      const bool is_last = u == 1 || (step.unit[1] & use) == 0;
      Scores s;
      begin_scores(s, q, u);
      if (!has_values) wait_for_phase(at.v_full(full_place<C::kStages>(uses_of(step), ring.stage)), phase);
      has_values = true;
      cute::warpgroup_wait<0>();
      wgmma_fence(s);
      wgmma_fence(o);
      if (held != kNone) release(at.v_empty(held));
      held = is_last ? ring.stage : kNone;
      if ((step.unit[u] & kPartialUnit) != 0) {
        hide_unit<kAttentionUnit / 8>(s, 0, step.unit[u], use, row, lane, {p.args.low, p.args.high, p.args.seq_k});
      }
      make_weights(s, rows, p.scale_log2, kExponents);
      // Not before, although they have been read: that was slower by 4 % (docs/notes/attention-forward.md).
      if (is_last) release(at.k_empty(ring.stage));
      if (rows.rescales) rescale(o, rows);
      round(s, weights);
      begin_values(o, weights, u);
    }
  }

  __device__ __forceinline__ void compute(const WorkTile& tile) {
    const Head head(p.args, tile.n_tile);
    const uint32_t q_tile = at.q(q_state.stage) + warpgroup * kUnitBytes;
    const uint64_t q = wgmma_descriptor_a(q_tile);
    const int first_row = tile.m_tile * kAttentionTile + warpgroup * kAttentionUnit + warp * kWarpRows;
    const int row = first_row + lane / 4;
    RowState rows;
    Sums o = {};
    Weights weights;
    wait_for_phase(at.q_full(q_state.stage), q_state.phase);
    int held = kNone;
    for (int i = 0; i < tile.entry_count; ++i) {
      const AttentionStep step = read_units<C>(p, tile, i, {});
      if (((step.unit[0] | step.unit[1]) & use) != 0) add_step(step, q, row, rows, held, weights, o);
      ++ring;
    }
    cute::warpgroup_wait<0>();
    wgmma_fence(o);
    if (held != kNone) release(at.v_empty(held));

    float weight[2], lse[2];
    end_rows(rows, 1, weight, lse);
    store_lse(p.args, tile.n_tile, lse, row, lane);
    // The warpgroup's rows of q have been read by all of its warps.
    cutlass::arch::NamedBarrier::sync(128, barrier);
    store_rows<Element>(p.map_o, o, weight, q_tile + warp * kWarpRows * kRowBytes, {first_row, head.q, head.batch},
                        lane);
    if (lane == 0) {
      cute::tma_store_wait<0>();
      arrive_in_cluster<1>(at.q_empty(q_state.stage));
    }
    __syncwarp();
    ++q_state;
  }
};

// By one thread of a pair.
template <class C>
__device__ void produce_for_pair(const Params& p, Shared<C>& shared, int pair) {
  const TileList list{p.args.tiles, p.args.tile_count, p.args.tiles_taken};
  Loader<C> loader{p, {shared_address(&shared)}};
  TilePlace<kTilesAhead> place;
  for (uint32_t index = pair * gridDim.x + blockIdx.x;; ++place) {
    shared.tiles.publish(list, index, place);
    if (index >= uint32_t(list.count)) return;
    loader.load_tile(list.tiles[index]);
    index = claim_tile_of(list, kPairs * gridDim.x);
  }
}

template <class C>
__global__ void __launch_bounds__(kPairThreads, 1) attention_pairs_kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<PairShared<C>*>(memory);
  for (int pair = 0; pair < kPairs; ++pair) begin(shared.pair[pair]);
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  if (warp < kProducers / 32) {
    cutlass::arch::warpgroup_reg_dealloc<kPairProducerRegisters>();
    if (warp < kPairs && cute::elect_one_sync()) produce_for_pair<C>(p, shared.pair[warp], warp);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kPairConsumerRegisters>();
    const int warpgroup = warp / 4 - 1, pair = warpgroup / kWarpgroups;
    auto& own = shared.pair[pair];
    PairConsumer<C> consumer{p, {shared_address(&own)}, warpgroup % kWarpgroups, warp % 4, lane, uint32_t(warpgroup)};
    TilePlace<kTilesAhead> place;
    for (WorkTile tile = own.tiles.next(place, lane); tile.m_tile != kNoTile; tile = own.tiles.next(place, lane)) {
      ++place;
      consumer.compute(tile);
    }
  }
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
