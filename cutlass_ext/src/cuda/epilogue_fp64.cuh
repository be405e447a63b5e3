// SPDX-License-Identifier: Apache-2.0
// The epilogue of epilogue.cuh for kernels that multiply fp64: C and the bias are of it too.
#pragma once

#include "cuda/epilogue.cuh"
#include "cuda/launch_args.h"

namespace sparsek::cuda {

constexpr ElementType kFp64 = static_cast<ElementType>(4);  // of C, where only kernels of fp64 meet it

// Each maps NaN to NaN, Inf to Inf, and -Inf to 0 or -0.
__device__ inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kGelu: {
      constexpr double kSqrtHalf = 0.70710678118654752440;
      const double y = 0.5 * x * (1 + erf(x * kSqrtHalf));
      return x == -INFINITY ? -0. : y;  // the formula gives Inf * 0
    }
    case Activation::kSilu: {
      const double decay = exp(-fabs(x));  // does not overflow
      const double y = (x < 0 ? x * decay : x) / (1 + decay);
      return x == -INFINITY ? -0. : y;
    }
    default:
      return x;
  }
}

// One element of C from its sum.
__device__ inline void write_element(const LaunchArgs& args, int64_t row, int64_t col, double sum) {
  const Epilogue& e = args.epilogue;
  const double beta = beta_of(e);
  double x = double(alpha_of(e)) * sum;
  if (beta != 0) x = fma(beta, static_cast<const double*>(e.c_in)[row * e.ldc_in + col], x);
  if (e.bias_kind != BiasKind::kNone) {
    x += static_cast<const double*>(e.bias)[e.bias_kind == BiasKind::kRow ? row : col];
  }
  static_cast<double*>(args.c)[row * args.ldc + col] = activated(e.activation, x);
}

}  // namespace sparsek::cuda
