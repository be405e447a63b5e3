// SPDX-License-Identifier: Apache-2.0
// Which kernels compute an attention.
#pragma once

#include <optional>
#include <string>

#include "cuda/attention.h"
#include "cuda/attention_any_order.h"
#include "cuda/attention_backward.h"
#include "cuda/attention_mass.h"
#include "plan/attention.h"

namespace sparsek::cuda {

// The kernels of both passes.
struct AttentionOps {
  AttentionForwardOps forward;
  AttentionBackwardOps backward;  // of e4m3: none

  void prepare() const;
};

// alone: most steps of the forward pass are used by one warpgroup alone. sm_count: of the GPU, whatever CTAs there are,
// since results must not depend on a limit on these.
AttentionOps attention_ops(const AttentionShape& shape, bool alone, int sm_count);
// Those that also serve lengths.
AttentionOps general_attention_ops(const AttentionShape& shape);
// Those that also serve a bias and bits of blocks. These, and those that follow, are not there for e4m3: their pointers
// are null.
AttentionOps attention_ops_with_terms(const AttentionShape& shape);
// Those of keys and values in pages, which also serve lengths.
AttentionForwardOps paged_attention_ops(const AttentionShape& shape);
AttentionMassOps attention_mass_ops(const AttentionShape& shape);
// Those of a backward pass by one walk, where the shape asks for any order and is served, of calls without lengths and
// terms.
std::optional<AttentionAnyOrderOps> attention_any_order_ops(const AttentionShape& shape);

inline bool is_e4m3(const AttentionShape& shape) { return shape.dtype == SPARSEK_E4M3; }

// Whether lists are in units, else in pieces.
bool attention_in_units(const AttentionShape& shape);

const char* attention_kernel_name(sparsek_dtype dtype);  // null: there is none
// Throws SPARSEK_NO_SUCH_KERNEL where no kernel, or none of the name, serves the shape.
void require_attention_kernel(const AttentionShape& shape, const std::string& kernel);

}  // namespace sparsek::cuda
