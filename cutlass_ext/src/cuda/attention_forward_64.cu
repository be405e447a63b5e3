// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_forward.cuh for heads of 64 columns.
#include "cuda/attention_launch.cuh"

namespace sparsek::cuda {

AttentionForwardOps attention_forward_64(sparsek_dtype dtype) { return attention_forward::ops<64, false>(dtype); }

}  // namespace sparsek::cuda
