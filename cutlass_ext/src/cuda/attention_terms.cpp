// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_terms.h"

#include <algorithm>
#include <cstdint>

#include "abi/dtype.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_matrix.h"

namespace sparsek::cuda {

AttentionTerms attention_terms(const AttentionShape& shape, const sparsek_attention_args& args, int device) {
  AttentionTerms terms = {};
  if (shape.batch == 0 || shape.seq_q == 0 || shape.seq_k == 0) return terms;
  if (args.bias != nullptr) {
    check_memory(args.bias, SPARSEK_DEVICE, device, "bias");
    terms.bias = args.bias;
    std::copy_n(args.stride_bias, 4, terms.stride_bias);
    terms.is_float = args.bias_dtype == SPARSEK_FP32;
    const int64_t element = dtype_bytes(args.bias_dtype);
    const auto fits = [&](int64_t bytes) {
      const auto is_aligned = [&](int64_t stride) { return stride * element % bytes == 0; };
      return args.stride_bias[3] == 1 && std::all_of(args.stride_bias, args.stride_bias + 3, is_aligned) &&
             reinterpret_cast<uintptr_t>(args.bias) % static_cast<size_t>(bytes) == 0;
    };
    terms.copy_bytes = static_cast<uint8_t>(fits(16) ? 16 : fits(4) ? 4 : element);
  }
  if (args.mask == nullptr) return terms;
  check_memory(args.mask, SPARSEK_DEVICE, device, "mask");
  check_memory(args.mask_index, SPARSEK_DEVICE, device, "mask_index");
  terms.mask = args.mask;
  terms.mask_index = args.mask_index;
  terms.mask_blocks = static_cast<int32_t>(std::min<int64_t>(args.mask_blocks, INT32_MAX));
  terms.words = static_cast<int32_t>((shape.block_k + 31) / 32);
  terms.block_q = static_cast<int32_t>(shape.block_q);
  terms.block_k = static_cast<int32_t>(shape.block_k);
  terms.query_blocks = static_cast<int32_t>(shape.query_blocks());
  terms.key_blocks = static_cast<int32_t>(shape.key_blocks());
  terms.layout_batch = static_cast<int32_t>(shape.layout_batch);
  terms.layout_heads = static_cast<int32_t>(shape.layout_heads);
  return terms;
}

float* clear_grad_bias(const AttentionShape& shape, const sparsek_attention_args& args, int device,
                       cudaStream_t stream) {
  const int64_t elements = shape.batch * shape.heads_q * shape.seq_q * shape.seq_k;
  if (args.grad_bias == nullptr || elements == 0) return nullptr;
  check_memory(args.grad_bias, SPARSEK_DEVICE, device, "grad_bias");
  check(cudaMemsetAsync(args.grad_bias, 0, static_cast<size_t>(elements) * sizeof(float), stream), "cudaMemsetAsync");
  return static_cast<float*>(args.grad_bias);
}

}  // namespace sparsek::cuda
