// SPDX-License-Identifier: Apache-2.0
// Kernels of attention's forward pass:
//
//   q, o   (batch, heads_q, seq_q, head_size):(strides, 1)
//   k, v   (batch, heads_k, seq_k, head_size):(strides, 1)
//   lse    (batch, heads_q, seq_q) or null
//
// A query sees the keys of the units that its tile's steps name for it, in partial ones those at which
// low <= key - query <= high. Where it sees none, o is 0 and lse is -inf.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/attention_step.h"
#include "plan/work_tile.h"
#include "sparsek.h"

namespace sparsek::cuda {

// Of a batch, a head and a row, in elements.
struct HeadStrides {
  int64_t batch, head, row;
};

struct AttentionForwardArgs {
  const AttentionStep* steps;  // of plan/attention_steps.h
  const WorkTile* tiles;
  int32_t tile_count;
  uint32_t* tiles_taken;  // (1), see collective/tile_queue.hpp
  int32_t batch, heads_q, heads_k, seq_q, seq_k;
  int32_t low, high;
  float scale;
  const void *q, *k, *v;
  void* o;
  HeadStrides stride_q, stride_k, stride_v, stride_o;
  float* lse;
  int32_t workers;  // CTAs
};

struct AttentionForwardOps {
  cudaError_t (*prepare)();  // loads the kernel; before the first launch on a device, since a capture does not allow it
  cudaError_t (*launch)(const AttentionForwardArgs& args, cudaStream_t stream);
};

// bf16 and fp16, by wgmma. Addresses and strides are multiples of 16 bytes.
AttentionForwardOps attention_forward_64(sparsek_dtype dtype);
// alone: most steps are used by one warpgroup alone.
AttentionForwardOps attention_forward_128(sparsek_dtype dtype, bool alone);

}  // namespace sparsek::cuda
