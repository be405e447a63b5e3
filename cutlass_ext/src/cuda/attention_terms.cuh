// SPDX-License-Identifier: Apache-2.0
// What general kernels of attention do with AttentionTerms. Scores are those of a warp's 16 own rows, of which a thread
// has two, row and row + 8, and two columns of each 8 rows that are met. Blocks are multiples of 16, so that 16 own
// rows and a piece of met ones lie in one block.
#pragma once

#include <type_traits>

#include "cuda/attention_pieces.cuh"

namespace sparsek::cuda {

// The first of a thread's two columns of 8.
template <class Step>
__device__ int met_column(const Step& step, int group, int lane) {
  return met_row(step, group / 2) + group % 2 * 8 + 2 * (lane % 4);
}

// mask_scores() of pieces First to First + Pieces, whose loads of a kind are begun together.
template <bool OfKeys, int First, int Pieces, class Step, int Groups>
__device__ __forceinline__ void mask_pieces(float (&s)[Groups][4], const AttentionTerms& terms, const int32_t* numbers,
                                            const Step& step, const TileLimits& limits, int row, int lane) {
  constexpr int kWords = OfKeys ? 4 : 2;  // of a piece: the thread's queries
  int number[Pieces];
  bool has_bits = false;
#pragma unroll
  for (int i = 0; i < Pieces; ++i) {
    const int met = met_row(step, First + i), q = OfKeys ? met : row, k = OfKeys ? row : met;
    number[i] = -1;
    if (met < limits.met_end) {
      number[i] = __ldg(numbers + int64_t(q / terms.block_q) * terms.key_blocks + k / terms.block_k);
    }
    has_bits |= uint32_t(number[i]) < uint32_t(terms.mask_blocks);
  }
  if (!has_bits) return;
  uint32_t bits[Pieces][kWords];
#pragma unroll
  for (int i = 0; i < Pieces; ++i) {
    const int met = met_row(step, First + i), q = OfKeys ? met : row, key = (OfKeys ? row : met) % terms.block_k;
    const uint32_t* const words =
        terms.mask + (int64_t(number[i]) * terms.block_q + q % terms.block_q) * terms.words + key / 32;
#pragma unroll
    for (int j = 0; j < kWords; ++j) {
      const int query = OfKeys ? 2 * (lane % 4) + j / 2 * 8 + j % 2 : lane / 4 + 8 * j;
      bits[i][j] = ~0u;
      if (uint32_t(number[i]) < uint32_t(terms.mask_blocks)) {
        bits[i][j] = __ldg(words + query * terms.words) >> (key % 32 + (OfKeys ? lane / 4 : 2 * (lane % 4)));
      }
    }
  }
#pragma unroll
  for (int i = 0; i < Pieces; ++i) {
#pragma unroll
    for (int g = 0; g < 2; ++g) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int word = OfKeys ? 2 * g + e % 2 : e / 2, bit = OfKeys ? e / 2 * 8 : g * 8 + e % 2;
        if ((bits[i][word] >> bit & 1) == 0) s[2 * (First + i) + g][e] = -INFINITY;
      }
    }
  }
}

// Sets scores whose bit is 0 to -inf. head: of queries. row: the warp's first.
template <bool OfKeys, class Step, int Groups>
__device__ void mask_scores(float (&s)[Groups][4], const AttentionTerms& terms, const Step& step,
                            const TileLimits& limits, int batch, int head, int heads_q, int row, int lane) {
  constexpr int kPieces = Groups / 2, kTogether = kPieces < 4 ? kPieces : 4;  // more need too many registers
  static_assert(kPieces == kTogether || kPieces == 2 * kTogether);
  if (row >= limits.own_end) return;
  const int layout_head =
      (terms.layout_batch == 1 ? 0 : batch) * terms.layout_heads + head / (heads_q / terms.layout_heads);
  const int32_t* const numbers = terms.mask_index + int64_t(layout_head) * terms.query_blocks * terms.key_blocks;
  mask_pieces<OfKeys, 0, kTogether>(s, terms, numbers, step, limits, row, lane);
  if constexpr (kPieces > kTogether) {
    mask_pieces<OfKeys, kTogether, kTogether>(s, terms, numbers, step, limits, row, lane);
  }
}

struct NoBias {};

// What a step's scores get, of which some may be hidden.
template <class Reader>
struct StepBias {
  Reader reader;
  bool has_hidden;  // the same in all lanes

  // Of groups `group` and `group` + 1, with 0 for hidden pairs, since the bias of these may be anything.
  template <int Groups>
  __device__ void load(float (&to)[2][4], const float (&scores)[Groups][4], int group) const {
    reader.load(to, group);
    if (!has_hidden) return;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (scores[group + i / 4][i % 4] == -INFINITY) to[i / 4][i % 4] = 0;
    }
  }
};

// exponents + log2(e) bias, of a group of scores. bias_of: what is loaded with an even group, of it and the next one.
template <class Bias, int Groups>
__device__ void add_bias_to_exponents(float (&exponents)[4], const Bias& bias, const float (&scores)[Groups][4],
                                      float (&bias_of)[2][4], int group) {
  if constexpr (!std::is_same_v<Bias, NoBias>) {
    constexpr float kLog2OfE = 1.4426950408889634f;
    if (group % 2 == 0) bias.load(bias_of, scores, group);
#pragma unroll
    for (int e = 0; e < 4; ++e) exponents[e] = fmaf(bias_of[group % 2][e], kLog2OfE, exponents[e]);
  }
}

// A thread's two own rows, row and row + 8, of a (queries, keys) matrix of gradients.
struct GradBiasRows {
  float* first;  // of the first row
  int64_t stride;
  int row, own_end;
};

// Writes what is not 0 of the gradients of the bias: those of pairs with weights.
template <class Step, int Groups>
__device__ void write_grad_bias(const float (&gradients)[Groups][4], const float (&weights)[Groups][4],
                                const GradBiasRows& to, const Step& step, int met_end, int lane) {
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    const int met = met_column(step, g, lane);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int own = e / 2 * 8, key = met + e % 2;
      if (weights[g][e] != 0 && to.row + own < to.own_end && key < met_end) {
        to.first[own * to.stride + key] = gradients[g][e];
      }
    }
  }
}

}  // namespace sparsek::cuda
