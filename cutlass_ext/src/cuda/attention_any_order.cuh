// SPDX-License-Identifier: Apache-2.0
// Attention's backward pass by one walk: a CTA takes tiles of 128 keys, of which each of two warpgroups has 64, and
// walks the queries that they meet, as the kernel of keys does (cuda/attention_gradient.cuh). Per step and warpgroup:
//
//   s = k q^T, t = v grad_o^T         wgmma, both operands in shared memory                    (64 keys, 64 queries)
//   p = exp2(s - lse)                 in registers, while t is computed
//   grad_v += p grad_o                wgmma, p in registers                                    (64 keys, head size)
//   ds = p (t - delta)                in registers, while grad_v is computed; also to shared memory
//   part of grad_q = ds^T k           wgmma over the 128 keys, half of the columns             (64, head size / 2)
//   grad_k += ds q                    wgmma, ds in registers                                   (64 keys, head size)
//
// and the part is added to sums in device memory while grad_k is computed. Where one warpgroup alone uses a step, it
// computes both halves of the columns, over its 64 keys.
//
// dS^T of a step lies in one of two buffers, in turn. A warpgroup that writes a buffer has waited for what both wrote
// into the other one, and each had finished the products of what the first held before it wrote there. Steps of one
// warpgroup alone use its half of the buffer that is next, and end what it does there by barriers of its own.
#pragma once

#include "cuda/attention_any_order_shared.cuh"
#include "cuda/attention_gradient.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

constexpr uint32_t kBothWarpgroups = 2;  // a named barrier; 0 and 1 are those of each

__device__ inline void add_four(float* to, const float (&x)[4]) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]),
               "f"(x[3])
               : "memory");
}

template <class C>
struct AnyOrderConsumer : Consumer<C> {
  using Base = Consumer<C>;
  using Element = typename C::Element;
  using typename Base::Scores;
  using typename Base::Sums;
  using typename Base::Weights;
  using Part = float[C::kHalfGroups][4];
  static constexpr uint32_t kDepthBytes = 16 * kRowBytes;  // of the 16 keys of a product

  float* const sums_q;
  uint32_t exchange = 0;   // the buffer that is next
  uint32_t exchanged = 0;  // the parity of the barrier
  bool was_alone = false;

  using Base::at;
  using Base::lane;
  using Base::p;
  using Base::ring;
  using Base::warp;
  using Base::warpgroup;

  __device__ AnyOrderConsumer(const AnyOrderParams& params, uint32_t base, int warpgroup, int warp, int lane)
      : Base{params.of_keys, {base}, warpgroup, warp, lane}, sums_q(params.sums_q) {}

  __device__ uint32_t exchange_at(uint32_t buffer) const {
    return at.base + offsetof(Shared<C>, exchange) + buffer * kChunkBytes;
  }
  __device__ uint32_t exchanged_at() const { return at.base + offsetof(Shared<C>, exchanged); }

  // Writes the warp's 16 keys of dS^T.
  __device__ void write_exchange(const Weights& gradients) const {
    const int row = lane % kWarpRows, second = lane / kWarpRows;
    const uint32_t to = exchange_at(exchange) + warpgroup * kUnitBytes + (warp * kWarpRows + row) * kRowBytes;
#pragma unroll
    for (int step = 0; step < Base::kDepthSteps; ++step) {
      const uint32_t(&of)[4] = gradients[step];
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                       to + ((2 * step + second) ^ row % 8) * 16),
                   "r"(of[0]), "r"(of[1]), "r"(of[2]), "r"(of[3])
                   : "memory");
    }
    cute::tma_store_fence();
  }

  // Begins part = or += dS K of a half of the columns, over the 64 keys of a warpgroup.
  __device__ void begin_part(Part& part, int half, int of_keys, bool adds) const {
    const int column = half * C::kHalfColumns;
    const uint64_t ds = wgmma_descriptor_a(exchange_at(exchange) + of_keys * kUnitBytes);
    const uint64_t keys = wgmma_descriptor_b(
        at.own_x() + column / kChunkColumns * kChunkBytes + column % kChunkColumns * 2 + of_keys * kUnitBytes,
        kChunkBytes);
#pragma unroll
    for (int step = 0; step < kAttentionUnit / 16; ++step) {
      wgmma_ss<Element, Major::MN, Major::MN>(part, advanced(ds, step * kDepthBytes),
                                              advanced(keys, step * kDepthBytes), adds || step > 0);
    }
  }

  // Adds a part to the sums. queries: of the step, a unit of 64 of a head.
  __device__ void add_part(const Part& part, int64_t queries, int half) const {
    float* const to = sums_q + ((queries * 2 + half) * 4 + warp) * C::kPieceFloats;
#pragma unroll
    for (int g = 0; g < C::kHalfGroups; ++g) add_four(to + (g * 32 + lane) * 4, part[g]);
  }

  __device__ static AttentionStep load_step(const AttentionStep* from) {
    const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
    return {{words.x, words.y}};
  }
  // Lets the compiler know that all lanes have the same.
  __device__ static AttentionStep shared_by_lanes(const AttentionStep& step) {
    return {{__shfl_sync(0xffffffffu, step.unit[0], 0), __shfl_sync(0xffffffffu, step.unit[1], 0)}};
  }

  // A step that the warpgroup uses, and where it is loaded.
  struct Taken {
    AttentionStep step;
    int stage;
    uint32_t full, phase;
  };
  // The steps of a tile that are left; words: of the next one.
  struct StepsLeft {
    const AttentionStep* next;
    int count;
    AttentionStep words;
  };
  // Takes the next step that the warpgroup uses, if there is one.
  __device__ bool take(StepsLeft& left, Taken& taken) {
    while (left.count > 0) {
      taken.step = shared_by_lanes(left.words);
      if (--left.count > 0) left.words = load_step(++left.next);
      const int stage = ring.stage;
      ++ring;
      if (!Base::uses(taken.step)) continue;
      const int place = full_place<C::kStages>(taken.step.unit[0] & kEitherUses, stage);
      taken.stage = stage;
      taken.full = at.met_full(place);
      taken.phase = ring.take_phase(place);
      return true;
    }
    return false;
  }
  __device__ void begin_scores_of(Scores& s, const Taken& taken) const {
    Base::begin_scores(s, Base::own_x, advanced(Base::met_x, taken.stage * C::kMetBytes));
  }

  __device__ __forceinline__ void add_steps(const WorkTile& tile, const Heads<C>& heads, int row, Sums& sums_x,
                                            Sums& sums_y) {
    if (tile.entry_count == 0) return;
    StepsLeft left{p.args.steps + tile.entry_begin, tile.entry_count, {}};
    left.words = load_step(left.next);
    Weights weights, gradients;
    Taken now;
    while (take(left, now)) {
      const AttentionStep step = now.step;
      const bool alone = (step.unit[0] & kEitherUses) != kEitherUses;
      const uint32_t at_stage = now.stage * C::kMetBytes;
      const uint32_t met_rows = at.rows(now.stage) + 2 * (lane % 4) * sizeof(RowSums);
      Scores s, t;
      wait_for_phase(now.full, now.phase);
      begin_scores_of(s, now);
      Base::begin_scores(t, Base::own_y, advanced(Base::met_y, at_stage));
      cute::warpgroup_wait<1>();
      wgmma_fence(s);
      if ((step.unit[0] & kPartialUnit) != 0) hide_step(s, step, row);
      Base::exponentiate(s, RowPair(), met_rows, step, NoBias());
      Base::round(s, weights);
      Base::begin_sums(sums_y, weights, advanced(Base::met_y_across, at_stage));
      cute::warpgroup_wait<1>();
      wgmma_fence(t);
      Base::differentiate(s, t, RowPair(), met_rows);
      Base::round(t, gradients);

      if (alone || was_alone) cutlass::arch::NamedBarrier::sync(128, uint32_t(warpgroup));
      was_alone = alone;
      write_exchange(gradients);
      if (alone) {
        cutlass::arch::NamedBarrier::sync(128, uint32_t(warpgroup));
      } else {
        __syncwarp();
        Base::release(exchanged_at());
        wait_for_phase(exchanged_at(), exchanged);
        exchanged ^= 1;
      }
      const int half = alone ? 0 : warpgroup;
      const int64_t queries =
          (int64_t(heads.batch) * p.args.heads_q + heads.met + int(step.unit[1])) * (p.args.padded / kAttentionUnit) +
          int(step.unit[0] & kUnitNumber);
      Part part;
      wgmma_fence(part);
      cute::warpgroup_arrive();
      begin_part(part, half, warpgroup, false);
      cute::warpgroup_commit_batch();
      if (!alone) {
        cute::warpgroup_arrive();
        begin_part(part, half, 1 - warpgroup, true);
        cute::warpgroup_commit_batch();
        exchange ^= 1;
      }
      Base::begin_sums(sums_x, gradients, advanced(Base::met_x_across, at_stage));
      cute::warpgroup_wait<1>();
      wgmma_fence(part);
      add_part(part, queries, half);
      if (alone) {
        wgmma_fence(part);
        cute::warpgroup_arrive();
        begin_part(part, 1, warpgroup, false);
        cute::warpgroup_commit_batch();
        cute::warpgroup_wait<0>();
        wgmma_fence(part);
        add_part(part, queries, 1);
      }
      cute::warpgroup_wait<0>();
      Base::release(at.met_empty(now.stage));
    }
    cute::warpgroup_wait<0>();
    wgmma_fence(sums_x);
    wgmma_fence(sums_y);
  }

  // As hide, also of keys behind the last, which have weights else and would reach the gradient of queries.
  __device__ void hide_step(Scores& s, const AttentionStep& step, int row) const {
    Base::hide(s, step, row, Base::low, Base::high, Base::met_end);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (row + 8 * r < p.args.seq_k) continue;
#pragma unroll
      for (int g = 0; g < Base::kScoreGroups; ++g) s[g][2 * r] = s[g][2 * r + 1] = -INFINITY;
    }
  }

  __device__ __forceinline__ void compute(const WorkTile& tile) {
    const Heads<C> heads(p.args, tile.n_tile);
    const int first_row = tile.m_tile * kAttentionTile + warpgroup * kAttentionUnit + warp * kWarpRows;
    Sums sums_x = {}, sums_y = {};
    wait_for_phase(at.own_full(), Base::own_phase);
    Base::own_phase ^= 1;
    add_steps(tile, heads, first_row + lane / 4, sums_x, sums_y);
    // All own keys have been read by both warpgroups, for the gradient of queries.
    cutlass::arch::NamedBarrier::sync(kConsumerWarps * 32, kBothWarpgroups);
    const uint32_t buffer = warpgroup * kUnitBytes + warp * kWarpRows * kRowBytes;
    if (p.args.grad_x != nullptr) store<C>(p.grad_x, sums_x, p.args.scale, at.own_x() + buffer, first_row, heads, lane);
    if (p.args.grad_y != nullptr) store<C>(p.grad_y, sums_y, 1.f, at.own_y() + buffer, first_row, heads, lane);
    if (lane == 0) {
      cute::tma_store_wait<0>();
      arrive_in_cluster<1>(at.own_empty());
    }
    __syncwarp();
  }
};

template <class C>
__global__ void __launch_bounds__(kThreads, 1) any_order_kernel(const __grid_constant__ AnyOrderParams p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared<C>*>(memory);
  if (threadIdx.x == 0) {
    cute::initialize_barrier(shared.own_full, 1);
    cute::initialize_barrier(shared.own_empty, kConsumerWarps);
    for (uint64_t& full : shared.met_full) cute::initialize_barrier(full, 1);
    for (uint64_t& empty : shared.met_empty) cute::initialize_barrier(empty, kConsumerWarps);
    cute::initialize_barrier(shared.exchanged, kConsumerWarps);
    shared.tiles.init(kConsumerWarps);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  if (warp < kProducers / 32) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if (warp == 0 && cute::elect_one_sync()) produce<C>(p.of_keys, shared);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    AnyOrderConsumer<C> consumer(p, shared_address(&shared), warp / 4 - 1, warp % 4, lane);
    TilePlace<kTilesAhead> place;
    for (WorkTile tile = shared.tiles.next(place, lane); tile.m_tile != kNoTile;
         tile = shared.tiles.next(place, lane)) {
      ++place;
      consumer.compute(tile);
    }
  }
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
