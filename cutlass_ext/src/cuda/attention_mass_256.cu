// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_mass.cuh"

namespace sparsek::cuda {

AttentionMassOps attention_mass_256(sparsek_dtype dtype) {
  return attention_gradient::mass_ops<256, StepKind::kPieces>(dtype);
}

}  // namespace sparsek::cuda
