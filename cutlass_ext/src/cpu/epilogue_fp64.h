// SPDX-License-Identifier: Apache-2.0
// The epilogue of products of fp64. Included by row_kernel.h.
#pragma once

#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

// Each activation gives NaN for NaN, Inf for Inf, and its limit, 0 or -0, for -Inf.
inline double activated_fp64(sparsek_activation activation, double x) {
  if (activation == SPARSEK_ACTIVATION_NONE || x != x) return x;
  if (x == -__builtin_inf()) return -0.0;
  switch (activation) {
    case SPARSEK_ACTIVATION_GELU:
      return 0.5 * x * __builtin_erfc(-x * 0.70710678118654752440);
    case SPARSEK_ACTIVATION_SILU:
      return x / (1 + __builtin_exp(-x));
    default:
      return x > 0 ? x : 0;
  }
}

// C = act(alpha * sums + beta * c_in + bias) for columns [col, end) of a row.
inline void write_row_fp64(const Product& product, int64_t row, int64_t col, int64_t end, const double* sums) {
  double* const c = static_cast<double*>(product.c) + row * product.ldc + col;
  const double* const c_in = static_cast<const double*>(product.c_in) + row * product.ldc_in + col;
  const double* const bias = static_cast<const double*>(product.bias);
  const double alpha = product.alpha, beta = product.beta;
  for (int64_t j = 0; j < end - col; ++j) {
    double v = alpha * sums[j];
    if (beta != 0) v += beta * c_in[j];
    if (product.bias_kind != SPARSEK_BIAS_NONE) v += bias[product.bias_kind == SPARSEK_BIAS_ROW ? row : col + j];
    c[j] = activated_fp64(product.activation, v);
  }
}

}  // namespace
}  // namespace sparsek::cpu
