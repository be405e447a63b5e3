// SPDX-License-Identifier: Apache-2.0
// From the enumerations of the C ABI to those of kernels.
#pragma once

#include "cuda/launch_args.h"
#include "sparsek.h"

namespace sparsek::cuda {

// Of a type that the GPU serves.
constexpr ElementType element_type(sparsek_dtype dtype) {
  static_assert(SPARSEK_BF16 == int(ElementType::kBf16) && SPARSEK_FP16 == int(ElementType::kFp16) &&
                SPARSEK_FP32 == int(ElementType::kFp32));  // see also kFp64
  return static_cast<ElementType>(dtype);
}

constexpr BiasKind bias_kind(sparsek_bias bias) {
  static_assert(SPARSEK_BIAS_NONE == int(BiasKind::kNone) && SPARSEK_BIAS_ROW == int(BiasKind::kRow) &&
                SPARSEK_BIAS_COLUMN == int(BiasKind::kColumn));
  return static_cast<BiasKind>(bias);
}

constexpr Activation activation(sparsek_activation given) {
  static_assert(SPARSEK_ACTIVATION_NONE == int(Activation::kNone) &&
                SPARSEK_ACTIVATION_RELU == int(Activation::kRelu) &&
                SPARSEK_ACTIVATION_GELU == int(Activation::kGelu) && SPARSEK_ACTIVATION_SILU == int(Activation::kSilu));
  return static_cast<Activation>(given);
}

}  // namespace sparsek::cuda
