// SPDX-License-Identifier: Apache-2.0
// Splits pairs of 16-bit numbers, so that tensor cores can multiply matrices with Inf and NaN where zeros that stand
// for absent elements must not meet them.
//
// Of B, each number is the sum of a finite one and a mark:
//   finite   the number; in place of Inf the smallest normal number of its sign, so that Inf of A gives Inf; 0 for NaN
//   met      1 for Inf and NaN, else 0
//   sign     1 or -1 for Inf, else 0
// Of A, where +0 stands for an absent element and -0 for a zero that is there:
//   there    1 for an element, 0 for an absent one
//   sign     1 or -1, 0 for zeros and absent ones
// Then an element of A B is that of A finite, if that of (there met) is 0. Otherwise Inf is added to it if that of
// (sign sign) equals that of (there met), -Inf if it is its negative, and NaN if it is neither.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cutlass/bfloat16.h"

namespace sparsek::cuda {

constexpr uint32_t kSigns = 0x80008000, kMagnitudes = ~kSigns;
constexpr uint32_t kAbsent = 0, kZero = 0x8000;  // of A

// An element of A that is there.
__host__ __device__ constexpr uint32_t present(uint32_t value) { return (value & 0x7fff) == 0 ? kZero : value; }

template <class Element>
struct MarkedPairs {
  static constexpr bool kBf16 = std::is_same_v<Element, cutlass::bfloat16_t>;
  static constexpr int kExponentShift = kBf16 ? 7 : 10;
  static constexpr uint32_t kLeastNormals = 0x00010001u << kExponentShift;
  static constexpr uint32_t kExponents = kSigns - kLeastNormals;
  static constexpr uint32_t kMantissas = kLeastNormals - 0x00010001u;
  static constexpr uint32_t kOnes = kBf16 ? 0x3f803f80 : 0x3c003c00;

  // Signs of those that are Inf or NaN; other bits say nothing.
  __host__ __device__ static constexpr uint32_t not_finite(uint32_t pair) {
    return (pair & kExponents) + kLeastNormals;
  }

  // All bits of those whose sign is set.
  __host__ __device__ static constexpr uint32_t spread(uint32_t signs) { return (signs >> 15) * 0xffff; }

  struct OfB {
    uint32_t finite, met, sign;
  };
  __host__ __device__ static constexpr OfB of_b(uint32_t pair) {
    const uint32_t met = not_finite(pair) & kSigns;
    const uint32_t with_mantissa = ((pair & kMantissas) + kMantissas) << (15 - kExponentShift);
    const uint32_t all = spread(met), inf = spread(met & ~with_mantissa), signs = pair & kSigns;
    return {(pair & ~all) | (inf & (kLeastNormals | signs)), all & kOnes, inf & (kOnes | signs)};
  }

  struct OfA {
    uint32_t there, sign;
  };
  __host__ __device__ static constexpr OfA of_a(uint32_t pair) {
    const uint32_t nonzero = (pair & kMagnitudes) + kMagnitudes;
    return {spread((nonzero | pair) & kSigns) & kOnes, (spread(nonzero & kSigns) & kOnes) | (pair & kSigns)};
  }
};

}  // namespace sparsek::cuda
