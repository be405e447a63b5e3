// SPDX-License-Identifier: Apache-2.0
// Vectors of sums, and functions of them, for attention_tile.h. The file that includes this defines kVectorBytes and
// `fused` for its instruction set. Everything is in an anonymous namespace: see kernel.h.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/element.h"

namespace sparsek::cpu {
namespace {

template <typename S>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(kVectorBytes), may_alias));
  typedef int32_t Bits __attribute__((vector_size(kVectorBytes), may_alias));
  using Bit = int32_t;
  static constexpr int kFraction = 23, kBias = 127;
  static constexpr float kRound = 0x1.8p23f;  // adding this rounds to an integer, which the last bits then hold
  static constexpr float kHigh = 0x1.62ep-1f, kLow = 0x1.62e42fefa39efp-1 - 0x1.62ep-1;  // their sum is log 2
  static constexpr float kLeast = -87, kMost = 88;
  static constexpr int kTerms = 8;  // of the series of exp: what is left out is below 2^-27
};
template <>
struct VectorOf<double> {
  typedef double Type __attribute__((vector_size(kVectorBytes), may_alias));
  typedef int64_t Bits __attribute__((vector_size(kVectorBytes), may_alias));
  using Bit = int64_t;
  static constexpr int kFraction = 52, kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kHigh = 0x1.62e42feep-1, kLow = 0x1.a39ef35793c76p-33;
  static constexpr double kLeast = -708, kMost = 709;
  static constexpr int kTerms = 14;  // 2^-57
};

template <typename S>
using Vector = typename VectorOf<S>::Type;
template <typename S>
using BitVector = typename VectorOf<S>::Bits;
template <typename S>
constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(S));

template <typename S>
Vector<S> splat(S x) {
  return Vector<S>{} + x;
}
template <typename S>
Vector<S>& vector_at(S* p) {
  return *reinterpret_cast<Vector<S>*>(p);
}
template <typename S>
const Vector<S>& vector_at(const S* p) {
  return *reinterpret_cast<const Vector<S>*>(p);
}

template <typename S>
constexpr S kInfinity = static_cast<S>(__builtin_inf());

// exp(x) with an error of at most 4 roundings; 0 where it is near the least normal number or below. NaN for NaN.
//     x = n log 2 + r, |r| <= log(2) / 2: exp(x) = 2^n (1 + r + r^2 / 2! + ...)
template <typename S>
Vector<S> exp_of(Vector<S> x) {
  using Of = VectorOf<S>;
  const Vector<S> shifted = fused(x, splat<S>(static_cast<S>(0x1.71547652b82fep+0)), splat<S>(Of::kRound));
  const Vector<S> n = shifted - Of::kRound;
  const Vector<S> r = fused(n, splat<S>(-Of::kLow), fused(n, splat<S>(-Of::kHigh), x));
  S factorial = 1;
  for (int i = 2; i < Of::kTerms; ++i) factorial *= static_cast<S>(i);
  Vector<S> sum = splat<S>(1 / factorial);
  for (int i = Of::kTerms - 1; i > 0; --i) {
    factorial /= static_cast<S>(i);
    sum = fused(sum, r, splat<S>(1 / factorial));
  }
  const BitVector<S> power = (reinterpret_cast<const BitVector<S>&>(shifted) + Of::kBias) << Of::kFraction;
  Vector<S> y = sum * reinterpret_cast<const Vector<S>&>(power);
  y = x < Of::kLeast ? Vector<S>{} : y;
  return x > Of::kMost ? splat<S>(kInfinity<S>) : y;
}

// tanh(x) = 1 - 2 / (exp(2x) + 1), with an absolute error of a few roundings.
template <typename S>
Vector<S> tanh_of(Vector<S> x) {
  return 1 - 2 / (exp_of<S>(x + x) + 1);
}

inline float widen(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
// The exponent, placed where fp32 has its own, is 112 too low: multiply by 2^112. All ones stay all ones.
inline float widen(Fp16 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13;
  float finite;
  std::memcpy(&finite, &magnitude, sizeof(finite));
  finite *= 0x1p112f;
  uint32_t bits;
  std::memcpy(&bits, &finite, sizeof(bits));
  const uint32_t special = 0u - static_cast<uint32_t>((x.bits & 0x7c00) == 0x7c00);
  bits = (bits & ~special) | ((magnitude | 0x7f800000u) & special) | static_cast<uint32_t>(x.bits & 0x8000) << 16;
  std::memcpy(&finite, &bits, sizeof(finite));
  return finite;
}
// As of fp16: the exponent is 120 too low. All ones but for the sign are NaN.
inline float widen(E4m3 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7f) << 20;
  float finite;
  std::memcpy(&finite, &magnitude, sizeof(finite));
  finite *= 0x1p120f;
  uint32_t bits;
  std::memcpy(&bits, &finite, sizeof(bits));
  const uint32_t nan = 0u - static_cast<uint32_t>((x.bits & 0x7f) == 0x7f);
  bits |= (nan & 0x7fc00000u) | static_cast<uint32_t>(x.bits & 0x80) << 24;
  std::memcpy(&finite, &bits, sizeof(finite));
  return finite;
}
inline float widen(float x) { return x; }
inline double widen(double x) { return x; }

// Rounded to nearest, ties to even.
inline void narrow(float x, Bf16* out) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  out->bits = static_cast<uint16_t>((x != x ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline void narrow(float x, Fp16* out) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  uint32_t half = 0x7c00;
  if (magnitude > 0x7f800000) {
    half = 0x7e00;
  } else if (magnitude < 113u << 23) {  // below 2^-14 the last place is that of 1/2: adding 1/2 rounds there
    float shifted;
    std::memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5f;
    std::memcpy(&half, &shifted, sizeof(half));
    half -= 126u << 23;
  } else if (magnitude < 0x477ff000) {
    half = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  }
  out->bits = static_cast<uint16_t>(sign | half);
}
inline void narrow(float x, float* out) { *out = x; }
inline void narrow(double x, double* out) { *out = x; }

// C (rows, lanes):(pitch, 1) += A (rows, depth):(a_row, a_step) B (depth, lanes):(pitch, 1), in the order of depth.
template <typename S, int kRows, int kVectors>
void add_panel(const S* a, int64_t a_row, int64_t a_step, const S* b, S* c, int64_t pitch, int64_t depth) {
  Vector<S> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sums[r][v] = vector_at(c + r * pitch + v * kWidth<S>);
  }
  for (int64_t k = 0; k < depth; ++k) {
    Vector<S> row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = vector_at(b + k * pitch + v * kWidth<S>);
    for (int r = 0; r < kRows; ++r) {
      const Vector<S> factor = splat<S>(a[r * a_row + k * a_step]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = fused(factor, row[v], sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) vector_at(c + r * pitch + v * kWidth<S>) = sums[r][v];
  }
}

template <typename S, int kVectors>
void add_rows(const S* a, int64_t a_row, int64_t a_step, int64_t rows, const S* b, S* c, int64_t pitch, int64_t depth) {
  int64_t r = 0;
  for (; r + 6 <= rows; r += 6) {
    add_panel<S, 6, kVectors>(a + r * a_row, a_row, a_step, b, c + r * pitch, pitch, depth);
  }
  for (; r + 2 <= rows; r += 2) {
    add_panel<S, 2, kVectors>(a + r * a_row, a_row, a_step, b, c + r * pitch, pitch, depth);
  }
  for (; r < rows; ++r) add_panel<S, 1, kVectors>(a + r * a_row, a_row, a_step, b, c + r * pitch, pitch, depth);
}

// lanes: rounded up to whole vectors.
template <typename S>
void add_product(const S* a, int64_t a_row, int64_t a_step, int64_t rows, const S* b, S* c, int64_t pitch,
                 int64_t depth, int64_t lanes) {
  constexpr int64_t kAtOnce = kVectorsAtOnce * kWidth<S>;
  int64_t lane = 0;
  for (; lane + kAtOnce <= lanes; lane += kAtOnce) {
    add_rows<S, kVectorsAtOnce>(a, a_row, a_step, rows, b + lane, c + lane, pitch, depth);
  }
  for (; lane < lanes; lane += kWidth<S>) {
    add_rows<S, 1>(a, a_row, a_step, rows, b + lane, c + lane, pitch, depth);
  }
}

}  // namespace
}  // namespace sparsek::cpu
