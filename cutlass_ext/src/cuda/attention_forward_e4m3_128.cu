// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_forward_e4m3.cuh for heads of up to 128 columns.
#include "cuda/attention_e4m3_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_e4m3_128(sparsek_dtype dtype_o, bool general) {
  return attention_e4m3::ops<128>(dtype_o, general);
}

}  // namespace sparsek::cuda
