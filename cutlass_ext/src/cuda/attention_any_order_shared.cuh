// SPDX-License-Identifier: Apache-2.0
// What a CTA of cuda/attention_any_order.cuh has in shared memory: what the kernel of keys has
// (cuda/attention_gradient_shared.cuh), with fewer stages, and
//
//   exchange   (2, 128, 64): dS^T of two steps, keys by queries, 128-byte swizzle; each warpgroup writes its 64 keys
#pragma once

#include "cuda/attention_any_order.h"
#include "cuda/attention_gradient_shared.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

constexpr int kExchanges = 2;

template <class Element, int HeadSize>
struct AnyOrderConfig : Config<Element, HeadSize, true> {
  static constexpr int kStages = HeadSize > 64 ? 3 : 4;
  // Each warpgroup computes half of the columns of the gradient of a step's queries.
  static constexpr int kHalfColumns = HeadSize / 2, kHalfGroups = kHalfColumns / 8;
  static constexpr int kPieceFloats = 16 * kHalfColumns;  // of a warp: 16 queries, half of the columns
};

template <class Element, int HeadSize>
struct Shared<AnyOrderConfig<Element, HeadSize>> {
  using C = AnyOrderConfig<Element, HeadSize>;
  alignas(1024) uint8_t own_x[C::kOwnBytes], own_y[C::kOwnBytes];
  uint8_t met_x[C::kStages][C::kMetBytes], met_y[C::kStages][C::kMetBytes];
  uint8_t exchange[kExchanges][kChunkBytes];
  RowSums rows[C::kStages][C::kMetRows];
  TileQueue<kTilesAhead> tiles;
  uint64_t own_full, own_empty;
  uint64_t met_full[kUserSets * C::kStages], met_empty[C::kStages];
  uint64_t exchanged;  // both warpgroups have written dS^T of a step
};

struct AnyOrderParams {
  Params of_keys;
  float* sums_q;  // see AttentionAnyOrderOps
};

}  // namespace attention_gradient
}  // namespace sparsek::cuda
