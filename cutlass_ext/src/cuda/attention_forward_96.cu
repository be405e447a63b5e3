// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_forward.cuh for heads of up to 96 columns.
#include "cuda/attention_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_96(sparsek_dtype dtype, bool alone) {
  return alone ? attention_forward::ops<96, true>(dtype) : attention_forward::ops<96, false>(dtype);
}

}  // namespace sparsek::cuda
