// SPDX-License-Identifier: Apache-2.0
#include "cpu/check_fp64.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/check_activation.h"
#include "cpu/check_values.h"

namespace sparsek::cpu {
namespace {

using Wide = long double;
static_assert(std::numeric_limits<Wide>::digits >= 64, "the reference must be more precise than what it judges");

constexpr int kCols = 64;  // of a row at a time
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Wide kRoundoff = 0x1p-53L;
constexpr Wide kHalfSubnormal = 0x1p-1075L;
constexpr Wide kOwnRoundoff = 0x1p-64L;  // of the reference

Wide gamma(Wide n, Wide u) { return n * u < 1 ? n * u / (1 - n * u) : kInfinity; }

Wide activated_wide(int32_t activation, Wide x) {
  if (activation == SPARSEK_ACTIVATION_NONE || std::isnan(x)) return x;
  if (x == -std::numeric_limits<Wide>::infinity()) return 0;
  switch (activation) {
    case SPARSEK_ACTIVATION_RELU:
      return x > 0 ? x : 0;
    case SPARSEK_ACTIVATION_GELU:
      return x / 2 * std::erfc(-x * std::sqrt(0.5L));
    default:
      return x / (1 + std::exp(-x));
  }
}

// The sums of some columns of a row.
struct Sums {
  Wide sum[kCols] = {}, magnitude[kCols] = {};
  int64_t products = 0;
};

// Element `at` of A.
double value_at(const sparsek_bsr& a, int64_t at) {
  switch (a.dtype) {
    case SPARSEK_BF16:
      return Element<SPARSEK_BF16>::value(static_cast<const uint16_t*>(a.values)[at]);
    case SPARSEK_FP16:
      return Element<SPARSEK_FP16>::value(static_cast<const uint16_t*>(a.values)[at]);
    case SPARSEK_FP32:
      return static_cast<const float*>(a.values)[at];
    default:
      return static_cast<const double*>(a.values)[at];
  }
}

template <typename Index>
void add_row(const sparsek_check_args& args, int64_t block_row, int64_t in_block, int64_t col, int cols, Sums& sums) {
  const sparsek_bsr& a = *args.a;
  const auto* const row_ptr = static_cast<const Index*>(a.row_ptr);
  const auto* const col_idx = static_cast<const Index*>(a.col_idx);
  for (int64_t block = row_ptr[block_row]; block < row_ptr[block_row + 1]; ++block) {
    const int64_t row = (block * a.block_m + in_block) * a.block_k;
    const int64_t first = col_idx[block] * a.block_k;
    const int64_t width = std::min(a.block_k, a.cols - first);
    sums.products += width;
    for (int64_t k = 0; k < width; ++k) {
      const Wide factor = value_at(a, row + k);
      const double* const b = static_cast<const double*>(args.b) + (first + k) * args.ldb + col;
      for (int j = 0; j < cols; ++j) {
        const Wide product = factor * b[j];
        sums.sum[j] += product;
        sums.magnitude[j] += std::fabs(product);
      }
    }
  }
}

}  // namespace

// With the roundings of the reference itself.
Reference reference_fp64(const sparsek_check_args& args, Wide sum, Wide magnitude, int64_t products, double c0,
                         double bias) {
  const auto scaled = [](Wide factor, Wide value) { return value == 0 ? 0 : factor * value; };
  const auto count = static_cast<Wide>(products);
  const Wide product = args.alpha * sum, addend = args.beta == 0 ? 0 : static_cast<Wide>(args.beta) * c0;
  const Wide before = product + addend + bias;
  const Wide value = activated_wide(args.activation, before);
  if (std::isinf(before) && std::isfinite(value)) return {static_cast<double>(value), 0};
  const ActivationError activation = activation_error(args.activation);
  const Wide steps = args.bias_kind == SPARSEK_BIAS_NONE ? 2 : 3;
  const Wide error =
      scaled(gamma(count, args.unit_roundoff) + gamma(count, kOwnRoundoff), std::fabs(args.alpha * magnitude)) +
      steps * (kRoundoff + kOwnRoundoff) *
          (std::fabs(product) + std::fabs(addend) + std::fabs(static_cast<Wide>(bias))) +
      (std::fabs(args.alpha * count) + 2) * kHalfSubnormal;
  const OutputType output = output_type(SPARSEK_FP64);
  const Wide bound = activation.lipschitz * error + activation.roundings * kRoundoff * (std::fabs(before) + error) +
                     output.unit_roundoff * std::fabs(value) + activation.underflows * kHalfSubnormal +
                     output.half_subnormal;
  return {static_cast<double>(value), static_cast<double>(bound)};
}

void check_row_fp64(const sparsek_check_args& args, int64_t block_row, int64_t in_block, int64_t row, Tally& tally) {
  const OutputType output = output_type(SPARSEK_FP64);
  const auto* const result = static_cast<const double*>(args.c) + row * args.ldc;
  const auto* const c0 = static_cast<const double*>(args.c0);
  const auto* const bias = static_cast<const double*>(args.bias);
  for (int64_t col = 0; col < args.n; col += kCols) {
    const int cols = static_cast<int>(std::min<int64_t>(kCols, args.n - col));
    Sums sums;
    if (args.a->index_type == SPARSEK_INT64) {
      add_row<int64_t>(args, block_row, in_block, col, cols, sums);
    } else {
      add_row<int32_t>(args, block_row, in_block, col, cols, sums);
    }
    for (int j = 0; j < cols; ++j) {
      const double before = args.beta == 0 ? 0 : c0[row * args.ldc + col + j];
      const double added = args.bias_kind == SPARSEK_BIAS_NONE  ? 0
                           : args.bias_kind == SPARSEK_BIAS_ROW ? bias[row]
                                                                : bias[col + j];
      tally.judge(row, col + j, result[col + j],
                  reference_fp64(args, sums.sum[j], sums.magnitude[j], sums.products, before, added), output);
    }
  }
}

}  // namespace sparsek::cpu
