// SPDX-License-Identifier: Apache-2.0
// The host's side of kernels of cuda/attention_mass.h.
#pragma once

#include "cuda/attention_gradient_launch.cuh"
#include "cuda/attention_mass.h"

namespace sparsek::cuda {
namespace attention_gradient {

template <int HeadSize, StepKind Steps>
AttentionMassOps mass_ops(sparsek_dtype dtype) {
  using Bf16 = Config<cutlass::bfloat16_t, HeadSize, false, Steps, Gradients::kNone>;
  using Fp16 = Config<cutlass::half_t, HeadSize, false, Steps, Gradients::kNone>;
  if (dtype == SPARSEK_BF16) return {prepare_kernel<Bf16>, launch<Bf16>};
  return {prepare_kernel<Fp16>, launch<Fp16>};
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
