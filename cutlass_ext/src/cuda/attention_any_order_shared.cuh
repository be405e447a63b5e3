// SPDX-License-Identifier: Apache-2.0
// What a CTA of cuda/attention_any_order.cuh has in shared memory: what the kernel of keys has
// (cuda/attention_gradient_shared.cuh), with fewer stages, and
//
//   exchange   (2, 128, 64): dS^T of two steps, keys by queries, 128-byte swizzle; each warpgroup writes its 64 keys
//   staged     (warp, piece): parts of the gradient of queries on their way to device memory, where bulk copies add
//   them
#pragma once

#include "cuda/attention_any_order.h"
#include "cuda/attention_gradient_shared.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

// How parts of the gradient of queries are added to its sums: by bulk copies out of shared memory, or by each thread.
enum class AddWay { kBulk, kThreads };

constexpr int kExchanges = 2;

// PartLast: the part of a step is computed behind the sums of keys, else before them.
template <class Element, int HeadSize, AddWay Way = AddWay::kThreads, bool PartLast = false>
struct AnyOrderConfig : Config<Element, HeadSize, true> {
  static constexpr AddWay kWay = Way;
  static constexpr bool kPartLast = PartLast;
  static constexpr int kStages = HeadSize > 64 ? 3 : 4;
  // Each warpgroup computes half of the columns of the gradient of a step's queries.
  static constexpr int kHalfColumns = HeadSize / 2, kHalfGroups = kHalfColumns / 8;
  static constexpr int kPieceFloats = 16 * kHalfColumns;  // of a warp: 16 queries, half of the columns
  static constexpr int kStagedFloats = Way == AddWay::kBulk ? kConsumerWarps * kPieceFloats : 4;
};

template <class Element, int HeadSize, AddWay Way, bool PartLast>
struct Shared<AnyOrderConfig<Element, HeadSize, Way, PartLast>> {
  using C = AnyOrderConfig<Element, HeadSize, Way, PartLast>;
  alignas(1024) uint8_t own_x[C::kOwnBytes], own_y[C::kOwnBytes];
  uint8_t met_x[C::kStages][C::kMetBytes], met_y[C::kStages][C::kMetBytes];
  uint8_t exchange[kExchanges][kChunkBytes];
  float staged[C::kStagedFloats];
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
