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

// A thread's elements of a (queries, keys) matrix of a head, for pairs of own and met rows. InPairs: two keys, which
// are met, have one load.
template <bool OfKeys, class Element, bool InPairs = false>
struct PairElements {
  Element* first;  // of the thread's first own row
  int64_t stride_own, stride_met;
  int row, own_end;

  __device__ bool is_own(int r) const { return row + 8 * r < own_end; }
  __device__ Element* at(int r, int met) const { return first + 8 * r * stride_own + met * stride_met; }
};

struct NoBias {};

// Calls run(PairElements), or run(NoBias()). head: of queries. row: the thread's first.
template <bool OfKeys, class Element, class Run>
__device__ void of_bias_type(const AttentionTerms& terms, int batch, int head, int row, int own_end, const Run& run) {
  if (terms.bias == nullptr) return run(NoBias());
  const int64_t own = terms.stride_bias[OfKeys ? 3 : 2], met = terms.stride_bias[OfKeys ? 2 : 3];
  const int64_t first = batch * terms.stride_bias[0] + head * terms.stride_bias[1] + row * own;
  const auto run_with = [&](const auto* of_type) {
    using Of = std::remove_reference_t<decltype(*of_type)>;
    if constexpr (!OfKeys) {
      if (terms.in_pairs) return run(PairElements<OfKeys, Of, true>{of_type + first, own, met, row, own_end});
    }
    run(PairElements<OfKeys, Of>{of_type + first, own, met, row, own_end});
  };
  terms.is_float ? run_with(static_cast<const float*>(terms.bias)) : run_with(static_cast<const Element*>(terms.bias));
}

// The bias of a thread's four pairs of 8 met rows, of those that are seen, else 0. met: the first column.
template <bool OfKeys, class Element, bool InPairs>
__device__ void load_bias(float (&to)[4], const PairElements<OfKeys, Element, InPairs>& bias, const float (&scores)[4],
                          int met) {
  struct alignas(2 * sizeof(Element)) Pair {
    std::remove_const_t<Element> of[2];
  };
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const bool sees[2] = {bias.is_own(r) && scores[2 * r] != -INFINITY,
                          bias.is_own(r) && scores[2 * r + 1] != -INFINITY};
    to[2 * r] = to[2 * r + 1] = 0;
    if constexpr (InPairs) {
      if (!sees[0] && !sees[1]) continue;
      const Pair pair = *reinterpret_cast<const Pair*>(bias.first + 8 * r * bias.stride_own + met);
#pragma unroll
      for (int e = 0; e < 2; ++e) to[2 * r + e] = sees[e] ? static_cast<float>(pair.of[e]) : 0.f;
    } else {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (sees[e]) to[2 * r + e] = static_cast<float>(*bias.at(r, met + e));
      }
    }
  }
}

// exponents + log2(e) bias, of scores.
template <class Bias>
__device__ void add_bias_to_exponents(float (&exponents)[4], const Bias& bias, const float (&scores)[4], int met) {
  if constexpr (!std::is_same_v<Bias, NoBias>) {
    constexpr float kLog2OfE = 1.4426950408889634f;
    float of_pair[4];
    load_bias(of_pair, bias, scores, met);
#pragma unroll
    for (int e = 0; e < 4; ++e) exponents[e] = fmaf(of_pair[e], kLog2OfE, exponents[e]);
  }
}

// Writes what is not 0 of the gradients of the bias: those of pairs with weights.
template <class Step, int Groups>
__device__ void write_grad_bias(const float (&gradients)[Groups][4], const float (&weights)[Groups][4],
                                const PairElements<false, float>& to, const Step& step, int met_end, int lane) {
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    const int met = met_column(step, g, lane);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (weights[g][e] != 0 && to.is_own(e / 2) && met + e % 2 < met_end) *to.at(e / 2, met + e % 2) = gradients[g][e];
    }
  }
}

}  // namespace sparsek::cuda
