// SPDX-License-Identifier: Apache-2.0
// The kernels with AttentionTerms of cuda/attention_gradient.cuh for heads of up to 128 columns.
#include "cuda/attention_gradient_launch.cuh"

namespace sparsek::cuda {

AttentionBackwardOps attention_backward_terms_128(sparsek_dtype dtype, bool pieces) {
  return pieces ? attention_gradient::ops<128, StepKind::kPieceTerms>(dtype)
                : attention_gradient::ops<128, StepKind::kUnitTerms>(dtype);
}

}  // namespace sparsek::cuda
