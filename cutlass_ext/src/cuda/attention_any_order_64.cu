// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_any_order.cuh for heads of 64 columns.
#include "cuda/attention_any_order_launch.cuh"

namespace sparsek::cuda {

AttentionAnyOrderOps attention_any_order_64(sparsek_dtype dtype) {
  return attention_gradient::any_order_ops<64>(dtype);
}

}  // namespace sparsek::cuda
