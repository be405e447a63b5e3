// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_mass.cuh"

namespace sparsek::cuda {

AttentionMassOps attention_mass_128(sparsek_dtype dtype, bool pieces) {
  return pieces ? attention_gradient::mass_ops<128, StepKind::kPieces>(dtype)
                : attention_gradient::mass_ops<128, StepKind::kUnits>(dtype);
}

}  // namespace sparsek::cuda
