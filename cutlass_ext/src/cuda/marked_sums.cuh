// SPDX-License-Identifier: Apache-2.0
// Sums of a warp's 16 rows by 8 Groups columns, by mma.sync, without zeros of absent elements times Inf or NaN: see
// marked_pairs.cuh. In the layout of D in mma_sync.cuh.
#pragma once

#include "cuda/marked_pairs.cuh"
#include "cuda/mma_sync.cuh"
#include "cuda/wgmma.cuh"

namespace sparsek::cuda {

template <class Element, int Groups, Major MajorB>
struct MarkedSums {
  float finite[Groups][4] = {}, met[Groups][4] = {}, sign[Groups][4] = {};
  bool any_met = false;

  // Adds the products of 64 elements of K. a: the tile of the warp's rows, (16, 64) elements, K-major, at a multiple of
  // 1024 bytes. b: (64, 64) elements of K by N, in the order MajorB. Both swizzled over 128 bytes. first_group: of b's
  // 8 groups of columns.
  __device__ void add(uint32_t a, uint32_t b, int first_group, int lane) {
    constexpr int kUnits = 4;
#pragma unroll 1
    for (int unit = 0; unit < kUnits; ++unit) {
      // A loop of its own: of a branch, ptxas would make predicates of all its instructions.
#pragma unroll 1
      while (unit < kUnits && add_if_finite(a, b, unit, first_group, lane)) ++unit;
      if (unit < kUnits) add_marked(a, b, unit, first_group, lane);
    }
  }

  // Whether a sum is NaN whatever follows: what met has more than the absolute sign never becomes less.
  __device__ bool stays_nan(int g, int i) const { return isnan(finite[g][i]) || met[g][i] != fabsf(sign[g][i]); }

  __device__ float result(int g, int i) const {
    if (met[g][i] == 0.f) return finite[g][i];
    return stays_nan(g, i) ? __int_as_float(0x7fffffff) : finite[g][i] + copysignf(INFINITY, sign[g][i]);
  }

 private:
  using Pairs = MarkedPairs<Element>;

  // The operands of 16 elements of K.
  struct Unit {
    uint32_t a[4], b[Groups / 2][4];

    __device__ Unit(uint32_t from_a, uint32_t from_b, int unit, int first_group, int lane) {
      constexpr int kRowBytes = 128;
      const int row = lane % 16, second = lane / 16;
      load_matrices(a, from_a + row * kRowBytes + ((2 * unit + second) ^ row % 8) * 16);
#pragma unroll
      for (int g = 0; g < Groups; g += 2) {
        const int group = first_group + g + second;
        if constexpr (MajorB == Major::K) {
          const int column = group * 8 + lane % 8;
          load_matrices(b[g / 2], from_b + column * kRowBytes + ((2 * unit + lane / 8 % 2) ^ column % 8) * 16);
        } else {
          load_matrices_transposed(b[g / 2], from_b + (16 * unit + row) * kRowBytes + (group ^ row % 8) * 16);
        }
      }
    }
  };

  // Unless an element of B is Inf or NaN.
  __device__ bool add_if_finite(uint32_t a, uint32_t b, int unit, int first_group, int lane) {
    const Unit of(a, b, unit, first_group, lane);
    uint32_t marks = 0;
#pragma unroll
    for (int i = 0; i < Groups * 2; ++i) marks |= Pairs::not_finite(of.b[i / 4][i % 4]);
    if (__any_sync(0xffffffffu, (marks & kSigns) != 0)) return false;
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      mma_m16n8k16<Element>(finite[g], of.a, of.b[g / 2][g % 2 * 2], of.b[g / 2][g % 2 * 2 + 1]);
    }
    return true;
  }

  __device__ void add_marked(uint32_t a, uint32_t b, int unit, int first_group, int lane) {
    const Unit of(a, b, unit, first_group, lane);
    any_met = true;
    uint32_t there[4], sign_a[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto marked = Pairs::of_a(of.a[i]);
      there[i] = marked.there, sign_a[i] = marked.sign;
    }
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      const auto b0 = Pairs::of_b(of.b[g / 2][g % 2 * 2]), b1 = Pairs::of_b(of.b[g / 2][g % 2 * 2 + 1]);
      mma_m16n8k16<Element>(finite[g], of.a, b0.finite, b1.finite);
      mma_m16n8k16<Element>(met[g], there, b0.met, b1.met);
      mma_m16n8k16<Element>(sign[g], sign_a, b0.sign, b1.sign);
    }
  }
};

}  // namespace sparsek::cuda
