// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_mass.cuh"

namespace sparsek::cuda {

AttentionMassOps attention_mass_64(sparsek_dtype dtype, bool pieces) {
  return pieces ? attention_gradient::mass_ops<64, StepKind::kPieces>(dtype)
                : attention_gradient::mass_ops<64, StepKind::kUnits>(dtype);
}

}  // namespace sparsek::cuda
