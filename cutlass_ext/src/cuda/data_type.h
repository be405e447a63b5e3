// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <library_types.h>

#include "sparsek.h"

namespace sparsek::cuda {

// The name of a type in the interfaces of NVIDIA's libraries.
inline cudaDataType data_type(sparsek_dtype dtype) {
  switch (dtype) {
    case SPARSEK_BF16:
      return CUDA_R_16BF;
    case SPARSEK_FP16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace sparsek::cuda
