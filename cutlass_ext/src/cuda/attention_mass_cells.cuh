// SPDX-License-Identifier: Apache-2.0
// What the kernel of masses (cuda/attention_mass.h) does with the weights of a step.
#pragma once

#include "cuda/attention_gradient_shared.cuh"
#include "cuda/attention_pieces.cuh"
#include "cuda/attention_store.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

// Where in a tile a thread is.
struct ThreadRows {
  int row, own_end;  // its first row, and the end of the sequence
  int warpgroup, warp, lane;
};

// Adds each of the warp's rows' weights of a step up, and writes the sums of its cells, of 16 queries.
template <class C, class Step, int Groups>
__device__ void write_mass(const AttentionGradientArgs& args, const float (&s)[Groups][4], const Step& step,
                           const WorkTile& tile, const ThreadRows& of) {
  constexpr int kWarpRows = attention_forward::kWarpRows;
  const AttentionMassCells& cells = args.mass;
  const bool is_there[2] = {of.row < of.own_end, of.row + 8 < of.own_end};
  const int own = tile.m_tile * (kAttentionTile / kWarpRows) + of.warpgroup * (kAttentionUnit / kWarpRows) + of.warp;
  float* const to = cells.sums + (int64_t(tile.n_tile) * cells.rows + own) * cells.columns;
  const auto add = [&](float sum, int group) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sum += is_there[e / 2] ? s[group][e] : 0.f;
    return sum;
  };
  const auto write = [&](float sum, int column) {
#pragma unroll
    for (int away = 16; away > 0; away /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, away);
    if (of.lane == 0) to[column] = sum;
  };
  float sum = 0;
  if constexpr (C::kPieces) {
    const int pieces = args.general.box / kAttentionPiece;
    const uint32_t rows = 1u << (kPieceBits + 4 * of.warpgroup + of.warp);
    uint32_t met = 0;  // a box may have pieces that are not met, as those beyond the last key
#pragma unroll
    for (int i = 0; i < Groups / 2; ++i) {
      sum = add(add(sum, 2 * i), 2 * i + 1);
      met |= step.word[i];
      if ((i + 1) % pieces != 0) continue;
      if ((met & rows) != 0) write(sum, int(step.word[i] & kPieceNumber) / pieces);
      sum = 0;
      met = 0;
    }
  } else {
#pragma unroll
    for (int g = 0; g < Groups; ++g) sum = add(sum, g);
    write(sum, int(step.unit[0] & kUnitNumber));
  }
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
