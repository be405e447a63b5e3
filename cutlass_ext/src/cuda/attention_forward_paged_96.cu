// SPDX-License-Identifier: Apache-2.0
// The kernels with AttentionPages of cuda/attention_forward.cuh for heads of up to 96 columns.
#include "cuda/attention_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_paged_96(sparsek_dtype dtype, bool pieces) {
  return pieces ? attention_forward::ops<96, true, StepKind::kPagedPieces>(dtype)
                : attention_forward::ops<96, true, StepKind::kPagedUnits>(dtype);
}

}  // namespace sparsek::cuda
