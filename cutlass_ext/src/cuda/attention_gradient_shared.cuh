// SPDX-License-Identifier: Apache-2.0
// What a CTA of cuda/attention_gradient.cuh has in shared memory. Tensors lie in chunks of 64 columns, 128-byte
// swizzle:
//
//   own_x, own_y   (chunk, 128, 64): q and grad_o, or k and v; over which the gradients are written
//   met_x, met_y   (chunk, 64, 64): k and v, or q and grad_o, of a step; of heads of more than 128 columns (chunk, 32,
//   64)
//
// Kernels with a bias have tiles of it, too (cuda/attention_bias_tile.cuh).
#pragma once

#include <type_traits>

#include "cuda/attention_backward.h"
#include "cuda/attention_shared.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

using attention_forward::BiasTiles;
using attention_forward::full_place;
using attention_forward::kChunkBytes;
using attention_forward::kChunkColumns;
using attention_forward::kConsumerWarps;
using attention_forward::kProducers;
using attention_forward::kRowBytes;
using attention_forward::kThreads;
using attention_forward::kTilesAhead;
using attention_forward::kUnitBytes;
using attention_forward::kUserSets;
using attention_forward::kWarpgroups;
using attention_forward::NoBiasTiles;
using attention_forward::StageReader;

constexpr int kProducerRegisters = 24, kConsumerRegisters = 240;

// Which gradients a kernel computes: of queries and of keys x, of values y; or none, but how much of the weights each
// block has (cuda/attention_mass.h).
enum class Gradients { kX, kY, kBoth, kNone };

// OfKeys: own rows are keys.
template <class Element_, int HeadSize, bool OfKeys, StepKind Steps = StepKind::kPlain,
          Gradients Of = OfKeys ? Gradients::kBoth : Gradients::kX>
struct Config {
  using Element = Element_;
  static constexpr bool kGeneral = Steps != StepKind::kPlain, kPieces = is_in_pieces(Steps);
  static constexpr bool kOfKeys = OfKeys, kOfX = Of == Gradients::kX || Of == Gradients::kBoth,
                        kOfY = Of == Gradients::kY || Of == Gradients::kBoth;
  static constexpr bool kOfMass = Of == Gradients::kNone;
  static constexpr bool kTerms = has_terms(Steps) || (kOfMass && kGeneral);
  static constexpr int kOperands = kOfMass ? 1 : 2;  // x, or x and y
  static constexpr int kHeadSize = HeadSize, kChunks = (HeadSize + kChunkColumns - 1) / kChunkColumns;
  static constexpr int kMetRows = HeadSize > 128 ? kAttentionUnit / 2 : kAttentionUnit;  // of a step
  static constexpr int kMetChunkBytes = kMetRows * kRowBytes;
  static constexpr int kOwnBytes = kChunks * kChunkBytes, kMetBytes = kChunks * kMetChunkBytes;
  // Where there are no y, an array of them still has some.
  static constexpr int kOwnYBytes = kOperands == 2 ? kOwnBytes : 1024, kMetYBytes = kOperands == 2 ? kMetBytes : 1024;
  // With heads of more than 128 columns tiles of a bias take the room of a third stage, where there are y.
  static constexpr int kStages = HeadSize > 128 ? (kOperands == 2 && kTerms ? 2 : 3) : 4;
  static constexpr int kRowSumBytes = kMetRows * sizeof(RowSums);
  static constexpr int kGroups = HeadSize / 8;                                       // of 8 columns, of a thread's sums
  static constexpr int kBiasBytes = kAttentionTile / kConsumerWarps * kMetRows * 4;  // of a warp's tile, of fp32
};

template <class C>
struct Shared {
  alignas(1024) uint8_t own_x[C::kOwnBytes], own_y[C::kOwnYBytes];
  uint8_t met_x[C::kStages][C::kMetBytes], met_y[C::kStages][C::kMetYBytes];
  RowSums rows[C::kStages][C::kMetRows];  // of met queries
  TileQueue<kTilesAhead> tiles;
  uint64_t own_full, own_empty;
  uint64_t met_full[kUserSets * C::kStages], met_empty[C::kStages];
  std::conditional_t<C::kTerms, BiasTiles<C>, NoBiasTiles> bias;
};

// Addresses of all that, from one register.
template <class C>
struct Addresses {
  uint32_t base;

  __device__ uint32_t own_x() const { return base + offsetof(Shared<C>, own_x); }
  __device__ uint32_t own_y() const { return base + offsetof(Shared<C>, own_y); }
  __device__ uint32_t met_x(int stage) const { return base + offsetof(Shared<C>, met_x) + stage * C::kMetBytes; }
  __device__ uint32_t met_y(int stage) const { return base + offsetof(Shared<C>, met_y) + stage * C::kMetYBytes; }
  __device__ uint32_t rows(int stage) const { return base + offsetof(Shared<C>, rows) + stage * C::kRowSumBytes; }
  __device__ uint32_t own_full() const { return base + offsetof(Shared<C>, own_full); }
  __device__ uint32_t own_empty() const { return base + offsetof(Shared<C>, own_empty); }
  __device__ uint32_t met_full(int place) const { return base + offsetof(Shared<C>, met_full) + place * kBarrierBytes; }
  __device__ uint32_t met_empty(int stage) const {
    return base + offsetof(Shared<C>, met_empty) + stage * kBarrierBytes;
  }
  __device__ uint32_t bias_tile(int warp) const { return base + offsetof(Shared<C>, bias) + warp * C::kBiasBytes; }
  __device__ uint32_t bias_rows(int warp) const {
    return base + offsetof(Shared<C>, bias) + offsetof(BiasTiles<C>, rows) + warp * sizeof(const uint8_t*);
  }
};

// A thread's two rows, or two columns.
struct RowPair {
  float bias[2], delta[2];
};

__device__ inline RowPair load_row_pair(uint32_t from) {
  RowPair of;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(of.bias[0]), "=f"(of.delta[0]), "=f"(of.bias[1]), "=f"(of.delta[1])
               : "r"(from)
               : "memory");
  return of;
}

struct Params {
  // (head_size, seq, heads, batch), boxes of 64 columns by 64 rows, of gradients by 16
  CUtensorMap own_x, own_y, met_x, met_y, grad_x, grad_y;
  AttentionGradientArgs args;
  float scale_log2, cap_log2;  // as of the forward pass
};

// Of a tile.
template <class C>
struct Heads {
  int batch, own, met;  // met: the first of those that it meets

  __device__ Heads(const AttentionGradientArgs& args, int n_tile) {
    const int heads = C::kOfKeys ? args.heads_k : args.heads_q, group = args.heads_q / args.heads_k;
    batch = n_tile / heads;
    own = n_tile % heads;
    met = C::kOfKeys ? own * group : own / group;
  }
};

}  // namespace attention_gradient
}  // namespace sparsek::cuda
