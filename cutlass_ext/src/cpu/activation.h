// SPDX-License-Identifier: Apache-2.0
// The activations on vectors of an instruction set: a part of cpu/tile_kernel.h. The error bound of
// sparsek.h relies on their accuracy: a change here needs a change of cpu/check_activation.cpp.
#pragma once

#include "sparsek.h"

namespace sparsek::cpu {
namespace {

// c[0] + c[1] x + ...
template <int kCount>
Isa::Vector polynomial(const float (&c)[kCount], Isa::Vector x) {
  Isa::Vector sum = Isa::broadcast(c[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) sum = Isa::multiply_add(sum, x, Isa::broadcast(c[i]));
  return sum;
}

// exp(v) for v <= 0; 0 where it is below 2^-125. NaN for NaN.
//   v = n log 2 + r, |r| <= log(2) / 2: exp(v) = 2^n (1 + r + r^2 q(r))
inline Isa::Vector exp_of_negative(Isa::Vector v) {
  constexpr float kLeast = -87;
  constexpr float kRound = 0x1.8p23f;  // adding this rounds to an integer, which the last bits then hold
  constexpr float kHigh = 0.693359375f, kLow = -2.12194440e-4f;  // kHigh + kLow = log 2; n kHigh is exact
  // Minimax for the relative error of exp: 2^-28.
  constexpr float kQ[] = {0.499999940f, 0.166665196f, 0.0416683927f, 0.00836878084f, 0.00138144707f};
  const Isa::Vector rounded = Isa::multiply_add(v, Isa::broadcast(1.44269504f), Isa::broadcast(kRound));
  const Isa::Vector n = Isa::add(rounded, Isa::broadcast(-kRound));
  Isa::Vector r = Isa::multiply_add(n, Isa::broadcast(-kHigh), v);
  r = Isa::multiply_add(n, Isa::broadcast(-kLow), r);
  const Isa::Vector tail = Isa::multiply_add(Isa::multiply(r, r), polynomial(kQ, r), r);
  const Isa::Vector e = Isa::multiply(Isa::add(Isa::broadcast(1), tail), Isa::power_of_two(rounded));
  return Isa::where_below(v, kLeast, Isa::zero(), e);
}

// x Phi(x). With a = |x|, Phi(-a) = exp(-a^2 / 2) w(a), and w is smooth in s = p a / (1 + p a).
inline Isa::Vector gelu(Isa::Vector x) {
  constexpr float kEnd = 14;  // from here on the exponential is 0
  constexpr float kP = 0.38f;
  // (w - 1/2) / s, minimax for the error of the result: 0.2 2^-24.
  constexpr float kW[] = {-1.04984868f,   0.681464374f,    -0.0106974952f, -0.130219758f,
                          -0.0232742969f, -0.00735160708f, 0.0711254776f,  -0.0312279407f};
  const Isa::Vector one = Isa::broadcast(1), half = Isa::broadcast(0.5f);
  const Isa::Vector factor = Isa::max(Isa::broadcast(-0x1.fffffep127f), x);  // -Inf would be multiplied by 0
  const Isa::Vector absolute = Isa::absolute(x);
  const Isa::Vector a = Isa::where_below(absolute, kEnd, absolute, Isa::broadcast(kEnd));
  const Isa::Vector pa = Isa::multiply(a, Isa::broadcast(kP));
  const Isa::Vector s = Isa::divide(pa, Isa::add(pa, one));
  const Isa::Vector w = Isa::multiply_add(s, polynomial(kW, s), half);
  const Isa::Vector e = exp_of_negative(Isa::multiply(Isa::multiply(a, Isa::broadcast(-0.5f)), a));
  const Isa::Vector below = Isa::multiply(e, w);
  const Isa::Vector above = Isa::multiply_add(e, Isa::multiply(w, Isa::broadcast(-1)), one);
  return Isa::multiply(factor, Isa::where_below(x, 0, below, above));
}

// x / (1 + exp(-x)), computed from exp(-|x|), which does not overflow, and keeps its digits where the result is small.
inline Isa::Vector silu(Isa::Vector x) {
  const Isa::Vector factor = Isa::max(Isa::broadcast(-0x1.fffffep127f), x);  // -Inf would be multiplied by 0
  const Isa::Vector decay = exp_of_negative(Isa::multiply(Isa::absolute(factor), Isa::broadcast(-1)));
  const Isa::Vector numerator = Isa::where_below(x, 0, Isa::multiply(factor, decay), factor);
  return Isa::divide(numerator, Isa::add(Isa::broadcast(1), decay));
}

template <sparsek_activation kActivation>
Isa::Vector activated(Isa::Vector x) {
  switch (kActivation) {
    case SPARSEK_ACTIVATION_NONE:
      return x;
    case SPARSEK_ACTIVATION_RELU:
      return Isa::max(Isa::zero(), x);
    case SPARSEK_ACTIVATION_GELU:
      return gelu(x);
    case SPARSEK_ACTIVATION_SILU:
      return silu(x);
  }
}

}  // namespace
}  // namespace sparsek::cpu
