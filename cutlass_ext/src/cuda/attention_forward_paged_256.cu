// SPDX-License-Identifier: Apache-2.0
// The kernels with AttentionPages of cuda/attention_forward.cuh for heads of up to 256 columns.
#include "cuda/attention_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_paged_256(sparsek_dtype dtype) {
  return attention_forward::ops<256, false, StepKind::kPagedPieces>(dtype);
}

}  // namespace sparsek::cuda
