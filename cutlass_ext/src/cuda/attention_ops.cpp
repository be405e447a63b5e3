// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_ops.h"

#include <algorithm>

#include "abi/error.h"
#include "cuda/attention_pairs.h"
#include "cuda/cuda_error.h"
#include "plan/attention_pieces.h"

namespace sparsek::cuda {
namespace {

// Of e4m3: rows are of whole vectors of 16 bytes.
const char* obstacle_of_e4m3(const AttentionShape& shape) {
  if (shape.head_size > 128 || shape.head_size % 16 != 0) return "head_size is no multiple of 16 up to 128";
  if (!has_attention_steps(shape)) return "blocks are no multiples of 64 x 64";
  if (shape.soft_cap > 0) return "it has a soft cap";
  if (shape.dtype_o != SPARSEK_BF16 && shape.dtype_o != SPARSEK_FP16) return "O is neither of bf16 nor of fp16";
  return nullptr;
}

const char* obstacle_of_16_bits(const AttentionShape& shape) {
  if (shape.head_size > 256 || shape.head_size % 8 != 0) return "head_size is no multiple of 8 up to 256";
  if (!has_attention_pieces(shape)) return "blocks are no multiples of 16 x 16";
  return nullptr;
}

// Why the kernel does not serve a shape; null: it does.
const char* obstacle(const AttentionShape& shape) {
  constexpr int64_t kMost = 1 << 27;
  if (shape.head_size != shape.head_size_v) return "head_size_v is another than head_size";
  if (const char* const why = is_e4m3(shape) ? obstacle_of_e4m3(shape) : obstacle_of_16_bits(shape)) return why;
  if (!(shape.scale > 0)) return "scale is not above 0";
  if (std::max(shape.seq_q, shape.seq_k) > kMost || shape.batch * shape.heads_q > kMost) return "it is too large";
  return nullptr;
}

AttentionForwardOps e4m3_ops(const AttentionShape& shape, bool general) {
  return shape.head_size <= 64 ? attention_forward_e4m3_64(shape.dtype_o, general)
                               : attention_forward_e4m3_128(shape.dtype_o, general);
}

// Whether there are so many tiles that pairs of warpgroups are faster.
bool has_tiles_for_pairs(const AttentionShape& shape, int sm_count) {
  const int64_t tiles = shape.batch * shape.heads_q * ((shape.seq_q + kAttentionTile - 1) / kAttentionTile);
  return tiles >= int64_t(kPairTiles) * sm_count;
}

}  // namespace

bool attention_in_units(const AttentionShape& shape) { return has_attention_steps(shape) && shape.head_size <= 128; }

void AttentionOps::prepare() const {
  check(forward.prepare(), "cudaFuncSetAttribute");
  if (backward.prepare != nullptr) check(backward.prepare(), "cudaFuncSetAttribute");
}

AttentionOps general_attention_ops(const AttentionShape& shape) {
  if (is_e4m3(shape)) return {e4m3_ops(shape, true), {}};
  const sparsek_dtype dtype = shape.dtype;
  const bool pieces = !attention_in_units(shape);
  if (shape.head_size <= 64) {
    return {attention_forward_general_64(dtype, pieces), attention_backward_general_64(dtype, pieces)};
  }
  if (shape.head_size <= 96) {
    return {attention_forward_general_96(dtype, pieces), attention_backward_general_96(dtype, pieces)};
  }
  if (shape.head_size <= 128) {
    return {attention_forward_general_128(dtype, pieces), attention_backward_general_128(dtype, pieces)};
  }
  return {attention_forward_general_256(dtype), attention_backward_general_256(dtype)};
}

AttentionOps attention_ops_with_terms(const AttentionShape& shape) {
  if (is_e4m3(shape)) return {};
  const sparsek_dtype dtype = shape.dtype;
  const bool pieces = !attention_in_units(shape);
  if (shape.head_size <= 64) {
    return {attention_forward_terms_64(dtype, pieces), attention_backward_terms_64(dtype, pieces)};
  }
  if (shape.head_size <= 96) {
    return {attention_forward_terms_96(dtype, pieces), attention_backward_terms_96(dtype, pieces)};
  }
  if (shape.head_size <= 128) {
    return {attention_forward_terms_128(dtype, pieces), attention_backward_terms_128(dtype, pieces)};
  }
  return {attention_forward_terms_256(dtype), attention_backward_terms_256(dtype)};
}

AttentionForwardOps paged_attention_ops(const AttentionShape& shape) {
  if (is_e4m3(shape)) return {};
  const bool pieces = !attention_in_units(shape);
  if (shape.head_size <= 64) return attention_forward_paged_64(shape.dtype, pieces);
  if (shape.head_size <= 96) return attention_forward_paged_96(shape.dtype, pieces);
  if (shape.head_size <= 128) return attention_forward_paged_128(shape.dtype, pieces);
  return attention_forward_paged_256(shape.dtype);
}

AttentionOps attention_ops(const AttentionShape& shape, bool alone, int sm_count) {
  if (is_e4m3(shape)) return {e4m3_ops(shape, false), {}};
  if (!attention_in_units(shape) || shape.soft_cap > 0) return general_attention_ops(shape);
  const sparsek_dtype dtype = shape.dtype;
  if (shape.head_size <= 64) {
    const bool pairs = has_tiles_for_pairs(shape, sm_count);
    return {pairs ? attention_pairs_64(dtype) : attention_forward_64(dtype), attention_backward_64(dtype)};
  }
  if (shape.head_size <= 96) return {attention_forward_96(dtype, alone), attention_backward_96(dtype)};
  return {attention_forward_128(dtype, alone), attention_backward_128(dtype)};
}

AttentionMassOps attention_mass_ops(const AttentionShape& shape) {
  if (is_e4m3(shape)) return {};
  const bool pieces = !attention_in_units(shape);
  if (shape.head_size <= 64) return attention_mass_64(shape.dtype, pieces);
  if (shape.head_size <= 128) return attention_mass_128(shape.dtype, pieces);
  return attention_mass_256(shape.dtype);
}

std::optional<AttentionAnyOrderOps> attention_any_order_ops(const AttentionShape& shape) {
  if (!shape.any_order || is_e4m3(shape) || !attention_in_units(shape) || shape.soft_cap > 0) return std::nullopt;
  if (shape.head_size <= 64) return attention_any_order_64(shape.dtype);
  if (shape.head_size <= 96) return std::nullopt;
  return attention_any_order_128(shape.dtype);
}

const char* attention_kernel_name(sparsek_dtype dtype) {
  switch (dtype) {
    case SPARSEK_BF16:
      return "attention_wgmma_bf16";
    case SPARSEK_FP16:
      return "attention_wgmma_fp16";
    case SPARSEK_E4M3:
      return "attention_wgmma_e4m3";
    default:
      return nullptr;
  }
}

void require_attention_kernel(const AttentionShape& shape, const std::string& kernel) {
  const char* const name = attention_kernel_name(shape.dtype);
  if (name == nullptr) fail(SPARSEK_NO_SUCH_KERNEL, "the CUDA back-end has attention in bf16, fp16 and e4m3 only");
  if (!kernel.empty() && kernel != name) {
    fail(SPARSEK_NO_SUCH_KERNEL, "there is no CUDA kernel %s of attention for this type: there is %s", kernel.c_str(),
         name);
  }
  if (const char* const why = obstacle(shape)) {
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve this attention: %s", name, why);
  }
}

}  // namespace sparsek::cuda
