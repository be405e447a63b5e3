// SPDX-License-Identifier: Apache-2.0
#include "cpu/check_judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sparsek::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFp32Roundoff = 0x1p-24;
constexpr double kFp32HalfSubnormal = 0x1p-150;

// gamma_n = n u / (1 - n u): the error of n roundings.
double gamma(double n, double u) { return n * u < 1 ? n * u / (1 - n * u) : kInfinity; }

// factor may be infinite: 0 times it is 0 here.
double scaled(double factor, double value) { return value == 0 ? 0 : factor * value; }

bool before(int64_t row_a, int64_t col_a, int64_t row_b, int64_t col_b) {
  return row_a != row_b ? row_a < row_b : col_a < col_b;
}

// |C - reference| / bound; 0 where both overflow or both are the same Inf or NaN, Inf where they differ in kind.
double error_ratio(double c, const Reference& reference, const OutputType& output) {
  const double value = reference.value;
  if (std::isnan(value)) return std::isnan(c) ? 0 : kInfinity;
  if (std::isinf(value)) return c == value ? 0 : kInfinity;
  if (std::isnan(c)) return kInfinity;
  if (std::isinf(c)) {
    const bool overflows = std::fabs(value) + reference.bound >= output.overflow;
    return overflows && std::signbit(c) == std::signbit(value) ? 0 : kInfinity;
  }
  const double error = std::fabs(c - value);
  return error == 0 ? 0 : error / reference.bound;
}

}  // namespace

OutputType output_type(int32_t dtype) {
  switch (dtype) {
    case SPARSEK_BF16:
      return {0x1p-8, 0x1p-134, 0x1.ffp127};
    case SPARSEK_FP16:
      return {0x1p-11, 0x1p-25, 65520};
    case SPARSEK_FP64:
      return {0x1p-52, 0x1p-1074, std::numeric_limits<double>::max()};
    default:
      return {0x1p-24, 0x1p-150, 0x1.ffffffp127};
  }
}

Bound::Bound(const sparsek_check_args& args, const OutputType& output, int64_t products)
    : alpha_(args.alpha),
      beta_(args.beta),
      activation_(args.activation),
      activation_error_(activation_error(args.activation)),
      gamma_(args.product_roundoff +
             (1 + args.product_roundoff) * gamma(static_cast<double>(products), args.unit_roundoff)),
      // alpha times the sum, plus beta C0, plus the bias: each of the first two passes two roundings, or three with a
      // bias.
      epilogue_((args.bias_kind == SPARSEK_BIAS_NONE ? 2 : 3) * kFp32Roundoff),
      // Near 0 the error of a rounding is half of the smallest subnormal instead (Higham, section 2.8), except for
      // sums, which are exact there. This counts each step of the products' sum, and the two products of the epilogue.
      underflow_((std::fabs(alpha_) * static_cast<double>(products) + 2) * kFp32HalfSubnormal),
      out_roundoff_(output.unit_roundoff),
      out_underflow_(activation_error_.underflows * kFp32HalfSubnormal + output.half_subnormal) {}

Reference Bound::reference(double sum, double magnitude, double c0, double bias) const {
  const double product = alpha_ * sum;
  const double addend = beta_ == 0 ? 0 : beta_ * c0;
  const double before = product + addend + bias;
  const double value = activated(activation_, before);
  // Only 0 is right for an activation of -Inf.
  if (std::isinf(before) && std::isfinite(value)) return {value, 0};
  const double error = scaled(gamma_, std::fabs(alpha_) * magnitude) +
                       epilogue_ * (std::fabs(product) + std::fabs(addend) + std::fabs(bias)) + underflow_;
  const double bound = activation_error_.lipschitz * error +
                       scaled(activation_error_.roundings * kFp32Roundoff, std::fabs(before) + error) +
                       out_roundoff_ * std::fabs(value) + out_underflow_;
  return {value, bound};
}

Tally::Tally(bool turned_over) : turned_over_(turned_over), report_{} {
  report_.max_ratio = -1;  // below every ratio: the first element is the worst so far
  report_.worst_row = report_.worst_col = -1;
  report_.first_row = report_.first_col = -1;
}

void Tally::judge(int64_t row, int64_t col, double c, const Reference& reference, const OutputType& output) {
  ++report_.elements;
  if (std::isfinite(c)) {
    report_.max_abs_c = std::max(report_.max_abs_c, std::fabs(c));
    if (std::isfinite(reference.value)) {
      report_.max_error = std::max(report_.max_error, std::fabs(c - reference.value));
    }
  }
  take_ratio(turned_over_ ? col : row, turned_over_ ? row : col, c, reference, error_ratio(c, reference, output));
}

void Tally::require_zero(int64_t row, int64_t col, double c) {
  if (c != 0) take_ratio(row, col, c, {0, 0}, kInfinity);
}

void Tally::take_ratio(int64_t row, int64_t col, double c, const Reference& reference, double ratio) {
  if (ratio > 1) {
    ++report_.failures;
    take_first(row, col);
  }
  if (ratio >= report_.max_ratio) {
    sparsek_check_report own{};
    own.max_ratio = ratio;
    own.worst_row = row;
    own.worst_col = col;
    own.worst_c = c;
    own.worst_ref = reference.value;
    own.worst_bound = reference.bound;
    take_worst(own);
  }
}

void Tally::merge(const Tally& other) {
  const sparsek_check_report& theirs = other.report_;
  report_.elements += theirs.elements;
  report_.failures += theirs.failures;
  report_.max_abs_c = std::max(report_.max_abs_c, theirs.max_abs_c);
  report_.max_error = std::max(report_.max_error, theirs.max_error);
  if (theirs.first_row >= 0) take_first(theirs.first_row, theirs.first_col);
  if (theirs.worst_row >= 0) take_worst(theirs);
}

void Tally::write(sparsek_check_report& out) const {
  const size_t abi_size = out.abi_size;
  out = report_;
  out.abi_size = abi_size;
  out.max_ratio = std::max(out.max_ratio, 0.0);
}

// Of equal ratios, the first element in row order.
void Tally::take_worst(const sparsek_check_report& other) {
  const bool worse = other.max_ratio > report_.max_ratio;
  const bool as_bad = other.max_ratio == report_.max_ratio;
  if (!worse && !(as_bad && before(other.worst_row, other.worst_col, report_.worst_row, report_.worst_col))) return;
  report_.max_ratio = other.max_ratio;
  report_.worst_row = other.worst_row;
  report_.worst_col = other.worst_col;
  report_.worst_c = other.worst_c;
  report_.worst_ref = other.worst_ref;
  report_.worst_bound = other.worst_bound;
}

void Tally::take_first(int64_t row, int64_t col) {
  if (report_.first_row >= 0 && !before(row, col, report_.first_row, report_.first_col)) return;
  report_.first_row = row;
  report_.first_col = col;
}

}  // namespace sparsek::cpu
