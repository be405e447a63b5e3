// SPDX-License-Identifier: Apache-2.0
// Elements as fp64, exactly. In an anonymous namespace: files for different instruction sets each get their own.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "sparsek.h"

namespace sparsek::cpu {
namespace {

inline float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t to_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// For a dtype: the type of its elements in memory, and their value as double.
template <int kDtype>
struct Element;

template <>
struct Element<SPARSEK_FP32> {
  using Stored = float;
  static double value(float x) { return x; }
};

template <>
struct Element<SPARSEK_BF16> {
  using Stored = uint16_t;
  static double value(uint16_t x) { return from_bits(static_cast<uint32_t>(x) << 16); }
};

template <>
struct Element<SPARSEK_FP16> {
  using Stored = uint16_t;
  // The five exponent bits, placed where fp32 has eight, are 112 too low: multiply by 2^112. All ones stay all ones.
  // Masks instead of branches let the compiler vectorise this.
  static double value(uint16_t x) {
    const uint32_t magnitude = static_cast<uint32_t>(x & 0x7fff) << 13;
    const uint32_t sign = static_cast<uint32_t>(x & 0x8000) << 16;
    const uint32_t special = 0u - static_cast<uint32_t>((x & 0x7c00) == 0x7c00);
    const uint32_t finite = to_bits(from_bits(magnitude) * 0x1p112f);
    return from_bits((finite & ~special) | ((magnitude | 0x7f800000u) & special) | sign);
  }
};

template <>
struct Element<SPARSEK_E4M3> {
  using Stored = uint8_t;
  static double value(uint8_t x) {
    const int exponent = x >> 3 & 15, fraction = x & 7;
    const double magnitude = exponent == 0                     ? fraction * 0x1p-9
                             : exponent == 15 && fraction == 7 ? std::numeric_limits<double>::quiet_NaN()
                                                               : std::ldexp(8 + fraction, exponent - 10);
    return (x & 0x80) != 0 ? -magnitude : magnitude;
  }
};

}  // namespace
}  // namespace sparsek::cpu
