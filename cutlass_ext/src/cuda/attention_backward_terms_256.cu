// SPDX-License-Identifier: Apache-2.0
// The kernels with AttentionTerms of cuda/attention_gradient.cuh for heads of up to 256 columns.
#include "cuda/attention_gradient_launch.cuh"

namespace sparsek::cuda {

AttentionBackwardOps attention_backward_terms_256(sparsek_dtype dtype) {
  return attention_gradient::ops<256, StepKind::kPieceTerms>(dtype);
}

}  // namespace sparsek::cuda
