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
    case SPARSEK_FP64:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

// The type that products of that type are summed in.
inline cudaDataType sum_type(sparsek_dtype dtype) { return dtype == SPARSEK_FP64 ? CUDA_R_64F : CUDA_R_32F; }

// alpha or beta in the type of the sums, as NVIDIA's libraries read them.
class LibraryScalar {
 public:
  LibraryScalar(float value, sparsek_dtype dtype) : wide_(value), narrow_(value), is_wide_(dtype == SPARSEK_FP64) {}
  const void* data() const { return is_wide_ ? static_cast<const void*>(&wide_) : &narrow_; }

 private:
  double wide_;
  float narrow_;
  bool is_wide_;
};

}  // namespace sparsek::cuda
