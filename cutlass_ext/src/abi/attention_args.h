// SPDX-License-Identifier: Apache-2.0
// The arguments of attention, checked, with defaults filled in. Each function throws Error, naming the member.
#pragma once

#include "plan/attention.h"
#include "sparsek.h"

namespace sparsek {

// Sizes and rules, without the layout.
AttentionShape resolve_attention_shape(const sparsek_attention_options& options);
// A layout's index, in either memory, checked but for its elements. Sets the extents of the shape's blocks.
sparsek_bsr resolve_attention_index(const sparsek_bsr* layout, AttentionShape& shape, const char* name);
// Of an index in host memory.
AttentionLayout attention_layout(const sparsek_bsr& index);
// The layout of the options, or every block. SPARSEK_WRONG_MEMORY where it is not in host memory.
AttentionLayout resolve_attention_layout(const sparsek_attention_options& options, AttentionShape& shape);

// What a call reads and writes.
enum class AttentionCall { kForward, kBackward };
sparsek_attention_args resolve_attention_args(const AttentionShape& shape, const sparsek_attention_args& given,
                                              AttentionCall call);

}  // namespace sparsek
