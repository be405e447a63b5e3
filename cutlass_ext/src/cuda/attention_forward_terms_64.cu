// SPDX-License-Identifier: Apache-2.0
// The kernels with AttentionTerms of cuda/attention_forward.cuh for heads of up to 64 columns.
#include "cuda/attention_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_terms_64(sparsek_dtype dtype, bool pieces) {
  return pieces ? attention_forward::ops<64, false, StepKind::kPieceTerms>(dtype)
                : attention_forward::ops<64, false, StepKind::kUnitTerms>(dtype);
}

}  // namespace sparsek::cuda
