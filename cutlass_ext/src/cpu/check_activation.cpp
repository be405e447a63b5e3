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
// Roundings, u = 2^-24, relative to |x|, of the formulas in cuda/epilogue.cuh. erff and expf differ by at most 2 ulp
// from the correctly rounded result (CUDA C++ Programming Guide, "Mathematical Functions", single precision; full
// range) and so by 2.5 ulp from the exact one; a division is rounded correctly:
//   GELU  x/2 (1 + erf z), z = x sqrt(1/2). The error of the bracket: 2.5 u for erf, as an ulp is u below 1; u for
//         z, as the constant and the product make it 2 u z, and 2 u z erf'(z) is at most 0.97 u; u for the sum, which
//         is at most 2. That times |x|/2, and u |x| for the last product: 3.25 u |x|.
//   SiLU  x g / (1 + t), t = exp(-|x|), g = 1 or, for x < 0, t. The error of t is 2.5 ulp, 5 u t, which changes
//         1 / (1 + t), and t / (1 + t) too, by 5 u t / (1 + t)^2, at most 1.25 u. Two roundings add 2 u, or, for x < 0,
//         three roundings of a result that is at most |x|/2 add 1.5 u: 3.25 u |x|.
// Terms of second order are below 0.75 u |x|, which makes 4. On the CPU both are polynomials (cpu/activation.h) with a
// smaller error: the long form of TestActivations in wrapper/ checks them, and the GPU's, against 4 for each float32
// that matters. Near 0 both end in two operations that may underflow; where an earlier operation underflows, its error
// is smaller than these roundings.
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
