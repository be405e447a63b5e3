// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_gradient.cuh for heads of up to 96 columns.
#include "cuda/attention_gradient_launch.cuh"

namespace sparsek::cuda {

AttentionBackwardOps attention_backward_96(sparsek_dtype dtype) { return attention_gradient::ops<96>(dtype); }

}  // namespace sparsek::cuda
