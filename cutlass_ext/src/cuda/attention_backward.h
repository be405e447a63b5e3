// SPDX-License-Identifier: Apache-2.0
// Kernels of attention's backward pass. One kernel walks the keys that each query meets, for the gradient of queries,
// and one the queries that each key meets, for those of keys and values; so nothing is added up atomically.
//
//   q, grad_o, grad_q        (batch, heads_q, seq_q, head_size):(strides, 1)
//   k, v, grad_k, grad_v     (batch, heads_k, seq_k, head_size):(strides, 1)
//   rows                     (batch, heads_q, seq_q rounded up to tiles) pairs of numbers, see RowSums
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/attention.h"

namespace sparsek::cuda {

// Of a query: p = exp2(scale * log2(e) * <q, k> + bias), dS = p (dP - delta). Where it sees no key, and behind the last
// query, bias is -inf and delta is 0.
struct RowSums {
  float bias;   // -log2(e) * lse
  float delta;  // <o, grad_o>
};

// Of each query head, the sums of the weights of cells: of 16 queries, and of keys as many as a box has, or 64.
struct AttentionMassCells {
  float* sums;       // (batch * heads_q, rows, columns), 0 before the kernel
  const float* lse;  // (batch, heads_q, seq_q)
  int32_t rows, columns;
};

struct AttentionRowsArgs {
  const void *o, *grad_o;
  HeadStrides stride_o, stride_grad_o;
  const float* lse;          // (batch, heads_q, seq_q)
  RowSums* rows;             // (batch * heads_q, padded)
  const int32_t* lengths_q;  // (batch) or null
  int32_t batch, heads_q, seq_q, head_size, padded;
};

// One of the two kernels. `own` are the rows of which it computes gradients, `met` those that they meet.
struct AttentionGradientArgs {
  const AttentionStep* steps;  // of plan/attention_gradient_steps.h
  const WorkTile* tiles;
  int32_t tile_count;
  uint32_t* tiles_taken;  // (1), see collective/tile_queue.hpp
  AttentionGeneralArgs general;
  int32_t batch, heads_q, heads_k, seq_q, seq_k, head_size, padded;
  int32_t low, high;  // as of the forward pass
  float scale;
  const void *q, *k, *v, *grad_o;
  HeadStrides stride_q, stride_k, stride_v, stride_grad_o;
  void *grad_x, *grad_y;  // of queries and null, or of keys and of values
  HeadStrides stride_grad_x, stride_grad_y;
  const RowSums* rows;
  AttentionMassCells mass;  // of a kernel of no gradients
  int32_t workers;          // CTAs
};

struct AttentionBackwardOps {
  cudaError_t (*prepare)();
  cudaError_t (*rows)(const AttentionRowsArgs& args, cudaStream_t stream);
  cudaError_t (*queries)(const AttentionGradientArgs& args, cudaStream_t stream);
  cudaError_t (*keys)(const AttentionGradientArgs& args, cudaStream_t stream);
};

// As of the forward pass. Addresses and strides are multiples of 16 bytes.
AttentionBackwardOps attention_backward_64(sparsek_dtype dtype);
AttentionBackwardOps attention_backward_96(sparsek_dtype dtype);
AttentionBackwardOps attention_backward_128(sparsek_dtype dtype);
// Those with AttentionGeneralArgs, of lists in pieces or in units.
AttentionBackwardOps attention_backward_general_64(sparsek_dtype dtype, bool pieces);
AttentionBackwardOps attention_backward_general_96(sparsek_dtype dtype, bool pieces);
AttentionBackwardOps attention_backward_general_128(sparsek_dtype dtype, bool pieces);
// Of lists in pieces, in steps of 32 rows.
AttentionBackwardOps attention_backward_general_256(sparsek_dtype dtype);
// With AttentionTerms, too.
AttentionBackwardOps attention_backward_terms_64(sparsek_dtype dtype, bool pieces);
AttentionBackwardOps attention_backward_terms_96(sparsek_dtype dtype, bool pieces);
AttentionBackwardOps attention_backward_terms_128(sparsek_dtype dtype, bool pieces);
AttentionBackwardOps attention_backward_terms_256(sparsek_dtype dtype);

}  // namespace sparsek::cuda
