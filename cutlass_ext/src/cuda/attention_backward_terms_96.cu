// SPDX-License-Identifier: Apache-2.0
// The kernels with AttentionTerms of cuda/attention_gradient.cuh for heads of up to 96 columns.
#include "cuda/attention_gradient_launch.cuh"

namespace sparsek::cuda {

AttentionBackwardOps attention_backward_terms_96(sparsek_dtype dtype, bool pieces) {
  return pieces ? attention_gradient::ops<96, StepKind::kPieceTerms>(dtype)
                : attention_gradient::ops<96, StepKind::kUnitTerms>(dtype);
}

}  // namespace sparsek::cuda
