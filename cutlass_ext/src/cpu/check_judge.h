// SPDX-License-Identifier: Apache-2.0
// Decides whether an element of C is within the bound of its reference, and collects the report of all elements.
#pragma once

#include <cstdint>

#include "cpu/check_activation.h"
#include "sparsek.h"

namespace sparsek::cpu {

// Rounding to C's type.
struct OutputType {
  double unit_roundoff;
  double half_subnormal;  // half of the smallest subnormal: the error of rounding near 0
  double overflow;        // the smallest magnitude that rounds to Inf
};
OutputType output_type(int32_t dtype);

// The reference of one element.
struct Reference {
  double value;  // act(alpha A B + beta C0 + bias); may be NaN or Inf
  double bound;  // on |C - value|, where value is finite
};

// Finds the references of one block row.
class Bound {
 public:
  // products: the number summed into each element of the block row. From 1 / unit_roundoff on there is no finite bound.
  Bound(const sparsek_check_args& args, const OutputType& output, int64_t products);

  // sum: of a b; magnitude: the sum of |a| |b|; c0 is not used where beta is 0; bias is 0 where there is none.
  Reference reference(double sum, double magnitude, double c0, double bias) const;

 private:
  const double alpha_, beta_;
  const int32_t activation_;
  const ActivationError activation_error_;
  const double gamma_;
  const double epilogue_;   // error of the roundings of the epilogue before the activation
  const double underflow_;  // error of underflows before the activation
  const double out_roundoff_;
  const double out_underflow_;  // error of underflows from the activation on
};

// A part of the report. The result does not depend on the order in which parts are made and merged.
class Tally {
 public:
  // turned_over: elements that are judged are those of the transpose of C.
  explicit Tally(bool turned_over = false);
  void judge(int64_t row, int64_t col, double c, const Reference& reference, const OutputType& output);
  // An element that is none of C and must be 0.
  void require_zero(int64_t row, int64_t col, double c);
  void merge(const Tally& other);
  // All members except abi_size.
  void write(sparsek_check_report& out) const;

 private:
  void take_worst(const sparsek_check_report& other);
  void take_first(int64_t row, int64_t col);
  void take_ratio(int64_t row, int64_t col, double c, const Reference& reference, double ratio);

  bool turned_over_;
  sparsek_check_report report_;
};

}  // namespace sparsek::cpu
