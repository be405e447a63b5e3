// SPDX-License-Identifier: Apache-2.0
// Joins the parts of attention's forward pass (plan/attention_parts.h).
#pragma once

#include "cuda/attention.h"

namespace sparsek::cuda {

struct AttentionJoinArgs {
  const float* part_o;    // (parts, batch, heads_q, seq_q, head_size)
  const float* part_lse;  // (parts, batch, heads_q, seq_q)
  int32_t parts, batch, heads_q, seq_q, head_size;
  void* o;  // (batch, heads_q, seq_q, head_size):(stride_o, 1)
  HeadStrides stride_o;
  float* lse;  // (batch, heads_q, seq_q), or null
};

// bf16 and fp16. Before the first launch on a device.
cudaError_t prepare_attention_join(sparsek_dtype dtype);
cudaError_t join_attention(const AttentionJoinArgs& args, sparsek_dtype dtype, cudaStream_t stream);

}  // namespace sparsek::cuda
