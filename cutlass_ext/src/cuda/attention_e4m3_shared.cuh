// SPDX-License-Identifier: Apache-2.0
// What a CTA of cuda/attention_forward_e4m3.cuh has in shared memory. Rows of q and k are 64 or 128 bytes, the head,
// which is also the swizzle; those of values are the 64 keys of a unit:
//
//   q   (128, head size)
//   k   (2, 64, head size): the two units of a step
//   v   (2, head size, 64): the same, transposed
//   o   (chunk, 128, 64), of 16 bits
#pragma once

#include "cuda/attention_shared.cuh"
#include "cutlass/float8.h"

namespace sparsek::cuda {
namespace attention_e4m3 {

using attention_forward::kChunkColumns;

// Names that cuda/attention_shared.cuh and cuda/attention_loads.cuh know: in bytes, all columns are one chunk.
template <class Output_, int HeadSize, StepKind Steps>
struct Config {
  using Element = cutlass::float_e4m3_t;
  using Output = Output_;
  static_assert(HeadSize == 64 || HeadSize == 128);
  static_assert(Steps == StepKind::kPlain || Steps == StepKind::kUnits);
  static constexpr bool kGeneral = Steps != StepKind::kPlain, kPieces = false, kTerms = false, kPaged = false;
  static constexpr bool kTransposedValues = true;
  static constexpr int kHeadSize = HeadSize, kChunks = 1;
  static constexpr int kStepRows = kAttentionTile;  // keys
  static constexpr int kUnitBytes = kAttentionUnit * HeadSize, kChunkBytes = kAttentionTile * HeadSize;
  static constexpr int kTileBytes = kChunkBytes, kStepChunkBytes = kChunkBytes, kStepBytes = kChunkBytes;
  static constexpr int kStages = HeadSize > 64 ? 4 : 6;
  static constexpr int kQueryStages = 2;
  static constexpr int kGroups = HeadSize / 8;  // of 8 columns, of a thread's sums
  static constexpr int kZeroBytes = 1024;
  static constexpr int kOutputBytes = HeadSize / kChunkColumns * attention_forward::kChunkBytes;
};

template <class C>
struct Memory {
  attention_forward::Shared<C> shared;
  alignas(1024) uint8_t o[C::kOutputBytes];
};

}  // namespace attention_e4m3
}  // namespace sparsek::cuda
