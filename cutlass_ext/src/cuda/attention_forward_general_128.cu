// SPDX-License-Identifier: Apache-2.0
// The general kernels of cuda/attention_forward.cuh for heads of up to 128 columns.
#include "cuda/attention_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_general_128(sparsek_dtype dtype, bool pieces) {
  return pieces ? attention_forward::ops<128, true, StepKind::kPieces>(dtype)
                : attention_forward::ops<128, true, StepKind::kUnits>(dtype);
}

}  // namespace sparsek::cuda
