// SPDX-License-Identifier: Apache-2.0
// The values of attention in e4m3 as its kernels read them: wgmma takes bytes with the summed dimension contiguous
// alone, which are keys.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/attention.h"

namespace sparsek::cuda {

struct TransposeValuesArgs {
  const void* v;  // (batch, heads, seq, head_size):(stride, 1), of bytes, in multiples of 16
  HeadStrides stride;
  // (batch, heads, head_size, transposed_keys(seq)): of each 16 keys, position 4 t + j has key 8 (j / 2) + 2 t + j % 2
  // (cuda/attention_forward_e4m3.cuh). Up to a multiple of 128 keys beyond the length it has zeros.
  void* to;
  int32_t batch, heads, seq, head_size;  // head_size: a multiple of 16 up to 128
  const int32_t* lengths;                // (batch), or null; clamped to 0 and seq
};

constexpr int64_t transposed_keys(int64_t seq) { return (seq + 127) / 128 * 128; }

cudaError_t prepare_transpose_values();  // before the first launch on a device
cudaError_t transpose_values(const TransposeValuesArgs& args, cudaStream_t stream);

}  // namespace sparsek::cuda
