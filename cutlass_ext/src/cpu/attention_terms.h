// SPDX-License-Identifier: Apache-2.0
// What scores of attention_tile.h have besides q k^T: a bias, and bits of the pairs of a block.
#pragma once

#include "cpu/attention_kernel.h"
#include "cpu/attention_vectors.h"

namespace sparsek::cpu {
namespace {

inline bool has_terms(const PairTerms& terms) { return terms.bias != nullptr || terms.mask != nullptr; }

inline bool is_masked(const AttentionTile& tile, int64_t query, int64_t key) {
  const PairTerms& terms = tile.terms;
  if (terms.mask == nullptr) return false;
  const int64_t block = terms.index[query / tile.block_q * terms.key_blocks + key / tile.block_k];
  if (block < 0 || block >= terms.mask_blocks) return false;
  const int64_t j = key % tile.block_k, row = block * tile.block_q + query % tile.block_q;
  return (terms.mask[row * terms.words + j / 32] >> (j % 32) & 1) == 0;
}

// to (lanes): what is added to the scores of a row that the tile's lanes meet, -Inf where a pair does not see each
// other. 0 behind the last lane.
template <typename T, typename S, bool kLanesAreKeys>
void load_terms(const AttentionTile& tile, int64_t row, S* to) {
  const PairTerms& terms = tile.terms;
  for (int64_t i = 0; i < kAttentionLanes; ++i) {
    const int64_t lane = tile.lane + i, query = kLanesAreKeys ? row : lane, key = kLanesAreKeys ? lane : row;
    to[i] = 0;
    if (lane >= tile.lane_end) continue;
    if (is_masked(tile, query, key)) {
      to[i] = -kInfinity<S>;
    } else if (terms.bias != nullptr) {
      const int64_t at = query * terms.stride_q + key * terms.stride_k;
      to[i] = terms.is_float ? static_cast<S>(static_cast<const float*>(terms.bias)[at])
                             : static_cast<S>(widen(static_cast<const T*>(terms.bias)[at]));
    }
  }
}

}  // namespace
}  // namespace sparsek::cpu
