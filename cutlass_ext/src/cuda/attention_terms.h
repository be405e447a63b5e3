// SPDX-License-Identifier: Apache-2.0
// What a call of attention has besides its operands: a bias, and bits of its blocks' pairs.
#pragma once

#include "cuda/attention.h"
#include "plan/attention.h"

namespace sparsek::cuda {

inline bool has_terms(const sparsek_attention_args& args) { return args.bias != nullptr || args.mask != nullptr; }

// As kernels have them. Throws where they do not lie in the device's memory.
AttentionTerms attention_terms(const AttentionShape& shape, const sparsek_attention_args& args, int device);

// Where the gradient of the bias goes, of which the kernel writes what is not 0, and which is 0 until then; null where
// there is none.
float* clear_grad_bias(const AttentionShape& shape, const sparsek_attention_args& args, int device,
                       cudaStream_t stream);

}  // namespace sparsek::cuda
