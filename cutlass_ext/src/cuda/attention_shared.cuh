// SPDX-License-Identifier: Apache-2.0
// What a CTA of cuda/attention_forward.cuh, or a pair of cuda/attention_pairs.cuh, has in shared memory. Tensors lie in
// chunks of 64 columns, 128-byte swizzle:
//
//   q      (chunk, 128, 64), over which o is written
//   k, v   (chunk, 128, 64): the two units of a step; of heads of more than 128 columns (chunk, 64, 64)
#pragma once

#include <cuda.h>

#include <cstddef>
#include <type_traits>

#include "collective/tile_queue.hpp"
#include "cuda/attention.h"
#include "cuda/ring.cuh"
#include "cuda/shared_address.cuh"
#include "cute/arch/copy_sm90_tma.hpp"

namespace sparsek::cuda {
namespace attention_forward {

constexpr int kWarpgroups = 2, kConsumerWarps = 4 * kWarpgroups, kProducers = 128;
constexpr int kThreads = kProducers + kConsumerWarps * 32;
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;
constexpr int kTilesAhead = 2;  // that are known ahead or still in use
constexpr int kChunkColumns = 64, kRowBytes = kChunkColumns * 2;
constexpr int kUnitBytes = kAttentionUnit * kRowBytes, kChunkBytes = kAttentionTile * kRowBytes;

// Each stage has a barrier for each choice of warpgroups that use what is loaded, so that a warpgroup which waits at
// one waits at all of its phases. With one barrier of a stage, a warpgroup that skipped a phase could take it, while
// its load was still under way, for the second next one, which has the same parity.
constexpr int kUserSets = 3;
// The place of a stage's barrier. uses: kFirstUses, kSecondUses or both.
template <int Stages>
__device__ int full_place(uint32_t uses, int stage) {
  return (int(uses / kFirstUses) - 1) * Stages + stage;
}

// A position of a warpgroup in a ring of stages of which it skips some.
template <int Stages>
struct StageReader {
  int stage = 0;
  uint32_t phases = 0;  // bits of the barriers of full stages

  // The parity to wait for, of one that the warpgroup uses.
  __device__ uint32_t take_phase(int place) {
    const uint32_t phase = phases >> place & 1;
    phases ^= 1u << place;
    return phase;
  }
  __device__ void operator++() { stage = stage + 1 == Stages ? 0 : stage + 1; }
};

// Alone: for lists most of whose steps one warpgroup alone uses, so that they go through the stages twice as fast. Then
// there is one more stage, in place of a second tile of queries.
template <class Element_, int HeadSize, bool Alone = false, StepKind Steps = StepKind::kPlain>
struct Config {
  using Element = Element_;
  static constexpr bool kGeneral = Steps != StepKind::kPlain, kPieces = is_in_pieces(Steps);
  static constexpr bool kTerms = has_terms(Steps), kPaged = has_pages(Steps);
  static constexpr bool kTransposedValues = false;
  static constexpr int kHeadSize = HeadSize, kChunks = (HeadSize + kChunkColumns - 1) / kChunkColumns;
  static constexpr int kStepRows = HeadSize > 128 ? kAttentionUnit : kAttentionTile;  // keys
  static constexpr int kUnitBytes = attention_forward::kUnitBytes, kChunkBytes = attention_forward::kChunkBytes;
  static constexpr int kTileBytes = kChunks * kChunkBytes;
  static constexpr int kStepChunkBytes = kStepRows * kRowBytes, kStepBytes = kChunks * kStepChunkBytes;
  // Tiles of a bias take the room of a third stage.
  static constexpr int kStages = HeadSize > 128 ? 2 : HeadSize > 64 ? (Alone && !kTerms ? 3 : 2) : 4;
  static constexpr int kQueryStages = Alone || HeadSize > 128 ? 1 : 2;
  static constexpr int kGroups = HeadSize / 8;  // of 8 columns, of a thread's sums
  static constexpr int kBiasBytes = kAttentionTile / kConsumerWarps * kStepRows * 4;  // of a warp's tile, of fp32
  static constexpr int kZeroBytes = 1024;
};

// Of each warp: its tile, see cuda/attention_bias_tile.cuh, and where the bias of its rows begins, which would take
// registers that are needed.
template <class C>
struct BiasTiles {
  alignas(512) uint8_t tile[kConsumerWarps][C::kBiasBytes];
  const uint8_t* rows[kConsumerWarps];
};
struct NoBiasTiles {};

template <class C>
struct Shared {
  // First, since compute-sanitizer takes an operand whose strides are 0 for one of contiguous rows.
  alignas(1024) uint32_t zeros[C::kZeroBytes / 4];
  alignas(1024) uint8_t q[C::kQueryStages][C::kTileBytes];
  uint8_t k[C::kStages][C::kStepBytes], v[C::kStages][C::kStepBytes];
  TileQueue<kTilesAhead> tiles;
  // Of each stage: its loads are complete; it may be filled.
  uint64_t q_full[C::kQueryStages], q_empty[C::kQueryStages];
  uint64_t k_full[kUserSets * C::kStages], k_empty[C::kStages], v_full[kUserSets * C::kStages], v_empty[C::kStages];
  // Of a stage of keys in pages: bits of the step's pieces of 16 keys whose page is not there.
  uint32_t missing[C::kStages];
  std::conditional_t<C::kTerms, BiasTiles<C>, NoBiasTiles> bias;
};

// By all threads: makes barriers and zeros ready.
template <class C>
__device__ void begin(Shared<C>& shared) {
  if (int(threadIdx.x) < C::kZeroBytes / 4) shared.zeros[threadIdx.x] = 0;
  cute::tma_store_fence();
  if (threadIdx.x == 0) {
    const auto init = [](uint64_t* barriers, int count, int arrivals) {
      for (int i = 0; i < count; ++i) cute::initialize_barrier(barriers[i], arrivals);
    };
    init(shared.q_full, C::kQueryStages, 1);
    init(shared.q_empty, C::kQueryStages, kConsumerWarps);
    init(shared.k_full, kUserSets * C::kStages, 1);
    init(shared.k_empty, C::kStages, kConsumerWarps);
    init(shared.v_full, kUserSets * C::kStages, 1);
    init(shared.v_empty, C::kStages, kConsumerWarps);
    shared.tiles.init(kConsumerWarps);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
}

// Addresses of all that, from one register.
template <class C>
struct Addresses {
  uint32_t base;

  __device__ uint32_t q(int stage) const { return base + offsetof(Shared<C>, q) + stage * C::kTileBytes; }
  __device__ uint32_t k(int stage) const { return base + offsetof(Shared<C>, k) + stage * C::kStepBytes; }
  __device__ uint32_t v(int stage) const { return base + offsetof(Shared<C>, v) + stage * C::kStepBytes; }
  __device__ uint32_t zeros() const { return base + offsetof(Shared<C>, zeros); }
  __device__ uint32_t q_full(int stage) const { return base + offsetof(Shared<C>, q_full) + stage * kBarrierBytes; }
  __device__ uint32_t q_empty(int stage) const { return base + offsetof(Shared<C>, q_empty) + stage * kBarrierBytes; }
  __device__ uint32_t k_full(int place) const { return base + offsetof(Shared<C>, k_full) + place * kBarrierBytes; }
  __device__ uint32_t k_empty(int stage) const { return base + offsetof(Shared<C>, k_empty) + stage * kBarrierBytes; }
  __device__ uint32_t v_full(int place) const { return base + offsetof(Shared<C>, v_full) + place * kBarrierBytes; }
  __device__ uint32_t v_empty(int stage) const { return base + offsetof(Shared<C>, v_empty) + stage * kBarrierBytes; }
  __device__ uint32_t missing(int stage) const { return base + offsetof(Shared<C>, missing) + stage * 4; }
  __device__ uint32_t bias_tile(int warp) const { return base + offsetof(Shared<C>, bias) + warp * C::kBiasBytes; }
  __device__ uint32_t bias_rows(int warp) const {
    return base + offsetof(Shared<C>, bias) + offsetof(BiasTiles<C>, rows) + warp * sizeof(const uint8_t*);
  }
};

struct Params {
  // (head_size, seq, heads, batch), or of keys in pages (head_size, rows of a page, heads, pages); boxes of 64 columns
  // by 64 rows, of o by 16.
  CUtensorMap map_q, map_k, map_v, map_o;
  AttentionForwardArgs args;
  float scale_log2;   // of exponents of 2; of those of capped scores, soft_cap for scale
  float cap_log2;     // soft_cap tanh(scale s / soft_cap) is 1 - 2 / (1 + exp2(cap_log2 s)) of it, or 0
  float score_scale;  // of scores to which a bias is added; scale_log2 is then log2(e)
  // Last, since most kernels have none.
  AttentionPages pages;
  AttentionScales scales;
};

struct Head {
  int batch, q, k;

  __device__ Head(const AttentionForwardArgs& args, int n_tile)
      : batch(n_tile / args.heads_q % args.batch), q(n_tile % args.heads_q), k(q / (args.heads_q / args.heads_k)) {}
};

}  // namespace attention_forward
}  // namespace sparsek::cuda
