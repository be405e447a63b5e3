// SPDX-License-Identifier: Apache-2.0
// Kernels of attention's backward pass that compute the gradients of queries, keys and values by one walk, over the
// queries that each key meets. Parts of the gradient of queries are added up in device memory in any order, so its last
// bits differ from call to call.
//
//   sums_q   (batch, heads_q, seq_q rounded up to tiles / 64, half of the columns, 16 rows of 64, group of 8 columns,
//            lane, 4) fp32, 0 before the kernel: a lane's numbers are those of wgmma's sums
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/attention_backward.h"

namespace sparsek::cuda {

// Columns of sums_q, of heads of at most 128.
constexpr int any_order_columns(int64_t head_size) { return head_size > 64 ? 128 : 64; }

// Of the kernel that makes the gradient of queries of its sums.
struct AttentionQuerySumsArgs {
  const float* sums_q;
  float scale;
  void* grad_q;
  HeadStrides stride_grad_q;
  int32_t batch, heads_q, seq_q, head_size, padded;
};

struct AttentionAnyOrderOps {
  cudaError_t (*prepare)();
  // The gradients of keys and of values as of AttentionBackwardOps::keys, and sums_q.
  cudaError_t (*keys)(const AttentionGradientArgs& args, float* sums_q, cudaStream_t stream);
  cudaError_t (*queries)(const AttentionQuerySumsArgs& args, cudaStream_t stream);
};

AttentionAnyOrderOps attention_any_order_64(sparsek_dtype dtype);
AttentionAnyOrderOps attention_any_order_128(sparsek_dtype dtype);

}  // namespace sparsek::cuda
