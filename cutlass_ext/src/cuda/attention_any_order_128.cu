// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_any_order.cuh for heads of 128 columns.
#include "cuda/attention_any_order_launch.cuh"

namespace sparsek::cuda {

AttentionAnyOrderOps attention_any_order_128(sparsek_dtype dtype) {
  return attention_gradient::any_order_ops<128>(dtype);
}

}  // namespace sparsek::cuda
