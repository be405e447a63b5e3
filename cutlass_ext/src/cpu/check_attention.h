// SPDX-License-Identifier: Apache-2.0
// Compares outputs of attention with a reference of more bits; sparsek.h derives the bounds. Shares no code with the
// kernels and their lists.
#pragma once

#include "plan/attention.h"
#include "sparsek.h"

namespace sparsek::cpu {

struct AttentionCheck {
  const AttentionShape& shape;
  const AttentionLayout& layout;
  const sparsek_attention_args& args;  // with strides
  double unit_roundoff, product_roundoff;
  sparsek_attention_output output;
  int32_t threads;  // 0: one for each core
};

// All members of the report except abi_size.
void check_attention(const AttentionCheck& check, sparsek_check_report& report);

}  // namespace sparsek::cpu
