// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_forward.cuh for heads of 128 columns.
#include "cuda/attention_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_128(sparsek_dtype dtype, bool alone) {
  return alone ? attention_forward::ops<128, true>(dtype) : attention_forward::ops<128, false>(dtype);
}

}  // namespace sparsek::cuda
