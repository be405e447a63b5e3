// SPDX-License-Identifier: Apache-2.0
// What pairs of 16-bit numbers are split into, so that sums with Inf and NaN are right although zeros stand for absent
// elements: every number, and sums of a few. Prints the first wrong answer and exits with 1.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#define __host__
#define __device__

#include "cuda/marked_pairs.cuh"

namespace {

using namespace sparsek::cuda;

// An IEEE number of 16 bits.
template <int ExponentBits>
double value_of(uint32_t bits) {
  constexpr int kMantissaBits = 15 - ExponentBits, kBias = (1 << (ExponentBits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> kMantissaBits & ((1u << ExponentBits) - 1));
  const auto mantissa = static_cast<double>(bits & ((1u << kMantissaBits) - 1));
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << ExponentBits) - 1) return sign * (mantissa == 0 ? INFINITY : NAN);
  const double scaled = std::ldexp(mantissa, -kMantissaBits);
  if (exponent == 0) return sign * std::ldexp(scaled, 1 - kBias);
  return sign * std::ldexp(1 + scaled, exponent - kBias);
}

bool is(double got, double want) { return got == want && std::signbit(got) == std::signbit(want); }

uint32_t half_of(uint32_t pair, int i) { return pair >> 16 * i & 0xffff; }

template <class Element, int ExponentBits>
struct Check {
  using Pairs = MarkedPairs<Element>;
  static constexpr auto value = value_of<ExponentBits>;

  static bool splits_b(uint32_t pair) {
    const auto of = Pairs::of_b(pair);
    for (int i = 0; i < 2; ++i) {
      const double x = value(half_of(pair, i)), finite = value(half_of(of.finite, i));
      const double met = value(half_of(of.met, i)), sign = value(half_of(of.sign, i));
      const bool marked = (Pairs::not_finite(pair) >> (15 + 16 * i) & 1) != 0;
      if (marked != !std::isfinite(x) || met != (marked ? 1 : 0)) return false;
      if (sign != (std::isinf(x) ? std::copysign(1, x) : 0)) return false;
      if (std::isfinite(x) ? !is(finite, x)
          : std::isnan(x)  ? finite != 0
                           : !(finite * x > 0 && std::isfinite(finite))) {
        return false;
      }
    }
    return true;
  }

  static bool splits_a(uint32_t pair) {
    const auto of = Pairs::of_a(pair);
    for (int i = 0; i < 2; ++i) {
      const uint32_t bits = half_of(pair, i);
      const double there = value(half_of(of.there, i)), sign = value(half_of(of.sign, i));
      if (there != (bits == kAbsent ? 0 : 1)) return false;
      if (sign != ((bits & 0x7fff) == 0 ? 0 : (bits & 0x8000) != 0 ? -1 : 1)) return false;
    }
    return true;
  }

  // A sum of a few elements of A that exist or not, by any numbers.
  static bool adds(std::mt19937& random) {
    const int exponents = ((1 << ExponentBits) - 1) << (15 - ExponentBits);
    const uint32_t special[] = {0,
                                0x8000,
                                1,
                                0x8001,
                                uint32_t(exponents),
                                uint32_t(exponents | 0x8000),
                                uint32_t(exponents | 1),
                                uint32_t(exponents / 2),
                                uint32_t(exponents / 2 | 0x8000)};
    const auto any = [&] {
      return random() % 3 == 0 ? special[random() % 9] : uint32_t(exponents / 2 + random() % 99);
    };
    double want = 0, finite = 0, met = 0, sign = 0;
    for (int k = static_cast<int>(random() % 6); k >= 0; --k) {
      const bool exists = random() % 3 != 0;
      const uint32_t b = any(), a = exists ? present(any()) : kAbsent;
      if (exists) want += value(a) * value(b);
      const auto of_a = Pairs::of_a(a);
      const auto of_b = Pairs::of_b(b);
      finite += value(a) * value(half_of(of_b.finite, 0));
      met += value(half_of(of_a.there, 0)) * value(half_of(of_b.met, 0));
      sign += value(half_of(of_a.sign, 0)) * value(half_of(of_b.sign, 0));
    }
    double got = finite;
    if (met != 0) got = met != std::fabs(sign) ? NAN : finite + std::copysign(INFINITY, sign);
    return std::isnan(want) ? std::isnan(got) : got == want;
  }

  static bool all(const char* name) {
    const uint32_t others[] = {0, 0x8000, 0x7c00, 0x7f80, 0xfc00, 0xff80, 0x7fff, 0x0001, 0x3c00, 0xbf80};
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      for (const uint32_t other : others) {
        for (const uint32_t pair : {bits | other << 16, other | bits << 16}) {
          if (splits_a(pair) && splits_b(pair)) continue;
          std::printf("%s: the pair 0x%08x is split wrongly\n", name, pair);
          return false;
        }
      }
    }
    std::mt19937 random(1);
    for (int i = 0; i < 300000; ++i) {
      if (adds(random)) continue;
      std::printf("%s: random sum %d is wrong\n", name, i);
      return false;
    }
    return true;
  }
};

}  // namespace

int main() { return Check<cutlass::bfloat16_t, 8>::all("bf16") && Check<cutlass::half_t, 5>::all("fp16") ? 0 : 1; }
