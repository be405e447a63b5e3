// SPDX-License-Identifier: Apache-2.0
// The work of attention's kernels in pieces of 16 rows (plan/attention_step.h), where blocks are multiples of 16. Steps
// hold rows of one tile's blocks one after the other, wherever these lie, so that a step of several small blocks is
// full.
#pragma once

#include "plan/attention_steps.h"

namespace sparsek {

// Whether blocks consist of whole pieces.
bool has_attention_pieces(const AttentionShape& shape);

// The most rows, 16, 32 or 64, that blocks of so many rows consist of, and that one box of a copy of such a step has.
int32_t attention_box(int64_t block, int32_t step_rows);

// What tiles of queries meet, in steps of step_rows keys, 32, 64 or 128: as make_attention_steps or
// make_query_gradient_steps, but the order of steps is free.
AttentionSteps make_query_pieces(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes,
                                 int32_t step_rows);
// What tiles of keys meet, as make_key_gradient_steps, in steps of step_rows queries, 32 or 64.
AttentionSteps make_key_pieces(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes,
                               int32_t step_rows);

}  // namespace sparsek
