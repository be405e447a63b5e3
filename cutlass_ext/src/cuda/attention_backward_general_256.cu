// SPDX-License-Identifier: Apache-2.0
// The general kernels of cuda/attention_gradient.cuh for heads of up to 256 columns.
#include "cuda/attention_gradient_launch.cuh"

namespace sparsek::cuda {

AttentionBackwardOps attention_backward_general_256(sparsek_dtype dtype) {
  return attention_gradient::ops<256, StepKind::kPieces>(dtype);
}

}  // namespace sparsek::cuda
