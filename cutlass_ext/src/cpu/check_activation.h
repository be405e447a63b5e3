// SPDX-License-Identifier: Apache-2.0
// The activations in fp64, and what one that is evaluated in fp32 may err by.
#pragma once

#include <cstdint>

namespace sparsek::cpu {

// For arguments x of an activation f that are themselves off by no more than e, the result is within
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
