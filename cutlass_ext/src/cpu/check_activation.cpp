// SPDX-License-Identifier: Apache-2.0
#include "cpu/check_activation.h"

#include <cmath>
#include <limits>

#include "sparsek.h"

namespace sparsek::cpu {

// Lipschitz constants, the largest |f'|, where f'' = 0:
//   GELU  f' = Phi(x) + x phi(x), f'' = (2 - x^2) phi(x): at sqrt 2, Phi + sqrt 2 phi = 0.9214 + 0.2076 < 1.13
//   SiLU  f' = s + x s (1 - s), s = 1 / (1 + exp(-x)); f'' = s (1 - s) (2 + x (1 - 2 s)): at 2.3994, 1.0998 < 1.1
//
// Roundings, u = 2^-24, relative to |x|, of the formulas in cuda/epilogue.cuh, where erff and expf err by at most 2 ulp
// of the correctly rounded result (CUDA C++ Programming Guide, "Mathematical Functions", single precision; full range)
// and so by 2.5 ulp of the exact one; a division is rounded correctly:
//   GELU  x/2 (1 + erf z), z = x sqrt(1/2). What the bracket errs by: 2.5 u for erf, as an ulp is u below 1; u for z,
//   as
//         the constant and the product make it 2 u z, and 2 u z erf'(z) is at most 0.97 u; u for the sum, which is at
//         most
//         2. That times |x|/2, and u |x| for the last product: 3.25 u |x|.
//   SiLU  x g / (1 + t), t = exp(-|x|), g = 1 or, below 0, t. t is off by 2.5 ulp, 5 u of itself, which changes
//         1 / (1 + t), and t / (1 + t) too, by 5 u t / (1 + t)^2, at most 1.25 u. To that come two roundings, 2 u, or,
//         below 0, three of a result that is at most |x|/2, 1.5 u: 3.25 u |x|.
// Of the second order are less than 0.75 u |x|: 4. On the CPU both are made of polynomials (cpu/activation.h) and err
// by less: the long form of TestActivations in wrapper/ holds them, and the GPU's, against 4 for each float32 that
// matters. Near 0 both end in two operations that may underflow; of whatever underflows before, these roundings are
// larger.
ActivationError activation_error(int32_t activation) {
  switch (activation) {
    case SPARSEK_ACTIVATION_GELU:
      return {1.13, 4, 2};
    case SPARSEK_ACTIVATION_SILU:
      return {1.1, 4, 2};
    default:
      return {1, 0, 0};
  }
}

double activated(int32_t activation, double x) {
  if (activation == SPARSEK_ACTIVATION_NONE || std::isnan(x)) return x;
  if (x == -std::numeric_limits<double>::infinity()) return 0;
  switch (activation) {
    case SPARSEK_ACTIVATION_RELU:
      return x > 0 ? x : 0;
    case SPARSEK_ACTIVATION_GELU:
      return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    default:
      return x / (1 + std::exp(-x));
  }
}

}  // namespace sparsek::cpu
