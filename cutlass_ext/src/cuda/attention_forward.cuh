// SPDX-License-Identifier: Apache-2.0
// Attention's forward pass. A CTA takes tiles of 128 queries. One thread loads them, and keys and values step by step
// (cuda/attention_loads.cuh); each of two warpgroups multiplies 64 queries. Per step and warpgroup:
//
//   s = q k^T          wgmma, both operands in shared memory   (64, 128)
//   p = exp2(s - top)  in registers                            cuda/attention_softmax.cuh
//   o += p v           wgmma, p in registers                   (64, head size)
//
// Products of a step run while exponentials are made: q k^T of a step is begun before p v of the one before it, so that
// a warpgroup's own p v goes on under its exponentials, and the other warpgroup's products do anyway.
#pragma once

#include "cuda/attention_loads.cuh"
#include "cuda/attention_softmax.cuh"
#include "cuda/attention_store.cuh"
#include "cuda/launch.cuh"
#include "cuda/wgmma_registers.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace attention_forward {

constexpr int kDepthSteps = kAttentionTile / 16;  // of p v

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
  struct Held {  // a step whose values are to be multiplied
    RingState<C::kStages> state;
    AttentionStep step;
  };

  const Params& p;
  const Addresses<C> at;
  const int warpgroup, warp, lane;  // warp: of the warpgroup
  const uint32_t use = warpgroup == 0 ? kFirstUses : kSecondUses;
  const uint64_t k_descriptor = wgmma_descriptor_a(at.k(0)), v_descriptor = wgmma_descriptor_b(at.v(0), kChunkBytes),
                 zeros = zero_descriptor(at.zeros());
  const float headroom = kHeadroom / p.scale_log2;
  RingState<C::kStages> ring;
  RingState<C::kQueryStages> q_state;

  __device__ bool uses(const AttentionStep& step) const { return ((step.unit[0] | step.unit[1]) & use) != 0; }
  __device__ bool hides(const AttentionStep& step) const {
    return ((step.unit[0] | step.unit[1]) & kPartialUnit) != 0 || (step.unit[0] & step.unit[1] & use) == 0;
  }
  // Both words are the same in all lanes, and the compiler knows it.
  __device__ static AttentionStep read_step(const AttentionStep* from) {
    const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
    return {{__shfl_sync(0xffffffffu, words.x, 0), __shfl_sync(0xffffffffu, words.y, 0)}};
  }
  __device__ void release(uint32_t barrier) const {
    if (lane == 0) arrive_in_cluster<1>(barrier);
  }

  // Begins s = q k^T.
  __device__ void begin_scores(Scores& s, uint64_t q) const {
    const uint64_t k = advanced(k_descriptor, ring.stage * C::kTileBytes);
    wgmma_fence(s);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < C::kHeadSize / 16; ++step) {
      const uint32_t at = step / 4 * kChunkBytes + step % 4 * 32;
      wgmma_ss<Element, Major::K>(s, advanced(q, at), advanced(k, at), step > 0);
    }
    cute::warpgroup_commit_batch();
  }

  // Begins o += p v. What a unit that the warpgroup does not use has in v is not multiplied, since it may be infinite.
  __device__ void begin_values(float (&o)[C::kGroups][4], const uint32_t (&weights)[kDepthSteps][4],
                               const Held& held) const {
    const uint64_t v = advanced(v_descriptor, held.state.stage * C::kTileBytes);
    const bool used[2] = {(held.step.unit[0] & use) != 0, (held.step.unit[1] & use) != 0};
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kDepthSteps; ++step) {
      wgmma_rs<Element>(o, weights[step], used[step / 4] ? advanced(v, step * 16 * kRowBytes) : zeros);
    }
    cute::warpgroup_commit_batch();
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

  // All but the tile's first step that this warpgroup uses.
  __device__ __forceinline__ void add_steps(const AttentionStep* steps, int i, int count, uint64_t q, int row,
                                            RowState& rows, Held& held, uint32_t (&weights)[kDepthSteps][4],
                                            float (&o)[C::kGroups][4]) {
    for (; i < count; ++i, ++ring) {
      const AttentionStep step = read_step(steps + i);
      if (!uses(step)) continue;
      Scores s;
      wait_for_phase(at.k_full(ring.stage), ring.phase);
      begin_scores(s, q);
      wait_for_phase(at.v_full(held.state.stage), held.state.phase);
      begin_values(o, weights, held);
      cute::warpgroup_wait<1>();
      wgmma_fence(s);
      release(at.k_empty(ring.stage));
      if (hides(step)) hide(s, step, use, row, lane, p.args);
      raise_top(s, rows, p.scale_log2, headroom);
      exponentiate(s, rows, p.scale_log2);
      cute::warpgroup_wait<0>();
      wgmma_fence(o);
      release(at.v_empty(held.state.stage));
      round(s, weights);
      if (rows.rescales) {
#pragma unroll
        for (int g = 0; g < C::kGroups; ++g) {
#pragma unroll
          for (int e = 0; e < 4; ++e) o[g][e] *= rows.factor[e / 2];
        }
      }
      held = {ring, step};
    }
  }

  __device__ __forceinline__ void compute(const WorkTile& tile) {
    const Head head(p.args, tile.n_tile);
    const AttentionStep* const steps = p.args.steps + tile.entry_begin;
    const uint32_t q_tile = at.q(q_state.stage) + warpgroup * kUnitBytes;
    const uint64_t q = wgmma_descriptor_a(q_tile);
    const int first_row = tile.m_tile * kAttentionTile + warpgroup * kAttentionUnit + warp * kWarpRows;
    const int row = first_row + lane / 4;
    RowState rows;
    float o[C::kGroups][4] = {};
    uint32_t weights[kDepthSteps][4];
    wait_for_phase(at.q_full(q_state.stage), q_state.phase);

    int i = 0;
    Held held = {};
    for (; i < tile.entry_count; ++i, ++ring) {
      held.step = read_step(steps + i);
      if (uses(held.step)) break;
    }
    if (i < tile.entry_count) {
      held.state = ring;
      {
        Scores s;
        wait_for_phase(at.k_full(ring.stage), ring.phase);
        begin_scores(s, q);
        cute::warpgroup_wait<0>();
        wgmma_fence(s);
        release(at.k_empty(ring.stage));
        if (hides(held.step)) hide(s, held.step, use, row, lane, p.args);
        raise_top(s, rows, p.scale_log2, headroom);
        exponentiate(s, rows, p.scale_log2);
        round(s, weights);
      }
      ++ring;
      add_steps(steps, i + 1, tile.entry_count, q, row, rows, held, weights, o);
      wait_for_phase(at.v_full(held.state.stage), held.state.phase);
      begin_values(o, weights, held);
      cute::warpgroup_wait<0>();
      wgmma_fence(o);
      release(at.v_empty(held.state.stage));
    }

    float weight[2], lse[2];
    end_rows(rows, p.scale_log2, weight, lse);
    if (p.args.lse != nullptr && lane % 4 == 0) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (row + 8 * r < p.args.seq_q) p.args.lse[int64_t(tile.n_tile) * p.args.seq_q + row + 8 * r] = lse[r];
      }
    }
    // The warpgroup's rows of q have been read by all of its warps.
    cutlass::arch::NamedBarrier::sync(128, uint32_t(warpgroup));
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
  if (threadIdx.x < kZeroBytes / 4) shared.zeros[threadIdx.x] = 0;
  cute::tma_store_fence();
  if (threadIdx.x == 0) {
    const auto init = [](uint64_t* barriers, int count, int arrivals) {
      for (int i = 0; i < count; ++i) cute::initialize_barrier(barriers[i], arrivals);
    };
    init(shared.q_full, C::kQueryStages, 1);
    init(shared.q_empty, C::kQueryStages, kConsumerWarps);
    init(shared.k_full, C::kStages, 1);
    init(shared.k_empty, C::kStages, kConsumerWarps);
    init(shared.v_full, C::kStages, 1);
    init(shared.v_empty, C::kStages, kConsumerWarps);
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

}  // namespace attention_forward
}  // namespace sparsek::cuda
