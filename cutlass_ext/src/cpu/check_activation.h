// SPDX-License-Identifier: Apache-2.0
// The activations in fp64, and the error bound of their evaluation in fp32.
#pragma once

#include <cstdint>

namespace sparsek::cpu {

// For an argument x of an activation f that has an error of at most e, the result is within
//     lipschitz e + roundings 2^-24 (|x| + e) + underflows 2^-150
// of f(x).
struct ActivationError {
  double lipschitz;
  double roundings;
  double underflows;
};
ActivationError activation_error(int32_t activation);

// f(x). NaN for NaN, Inf for Inf; 0 for -Inf, unless there is no activation.
double activated(int32_t activation, double x);

}  // namespace sparsek::cpu
