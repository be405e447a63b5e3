// SPDX-License-Identifier: Apache-2.0
// Elements of any type on the host: their value in the type of their sums, exactly, and back, rounded to nearest even.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/element.h"
#include "sparsek.h"

namespace sparsek::pattern {

using cpu::Bf16;
using cpu::Fp16;

inline float float_of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t bits_of_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline double load(double x) { return x; }
inline float load(float x) { return x; }
inline float load(Bf16 x) { return float_of_bits(uint32_t{x.bits} << 16); }
// The five exponent bits, where fp32 has eight, are 112 too low. All ones stay all ones.
inline float load(Fp16 x) {
  const uint32_t magnitude = (x.bits & 0x7fffu) << 13, sign = (x.bits & 0x8000u) << 16;
  const bool is_special = (x.bits & 0x7c00) == 0x7c00;
  const uint32_t finite = bits_of_float(float_of_bits(magnitude) * 0x1p112f);
  return float_of_bits((is_special ? magnitude | 0x7f800000u : finite) | sign);
}

inline void store(double* to, double x) { *to = x; }
inline void store(float* to, float x) { *to = x; }
inline void store(Bf16* to, float x) {
  const uint32_t bits = bits_of_float(x);
  const uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  to->bits = static_cast<uint16_t>(x != x ? bits >> 16 | 0x40 : rounded >> 16);
}
inline void store(Fp16* to, float x) {
  const uint32_t bits = bits_of_float(x), magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (x != x) {
    half = 0x7e00;
  } else if (magnitude > 0x477fefffu) {  // 65520 and above
    half = 0x7c00;
  } else if (magnitude < 113u << 23) {  // below 2^-14 the last place is that of 1/2: adding 1/2 rounds there
    half = bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f);
  } else {
    half = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
  }
  to->bits = static_cast<uint16_t>(half | (bits >> 16 & 0x8000));
}

// Calls work with a null pointer to the type of a dtype.
template <class Work>
void with_element(sparsek_dtype dtype, Work work) {
  switch (dtype) {
    case SPARSEK_BF16:
      return work(static_cast<Bf16*>(nullptr));
    case SPARSEK_FP16:
      return work(static_cast<Fp16*>(nullptr));
    case SPARSEK_FP32:
      return work(static_cast<float*>(nullptr));
    case SPARSEK_FP64:
      return work(static_cast<double*>(nullptr));
    case SPARSEK_E4M3:  // refused before
      return;
  }
}

}  // namespace sparsek::pattern
