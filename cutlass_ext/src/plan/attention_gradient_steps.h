// SPDX-License-Identifier: Apache-2.0
// The work of attention's backward kernels. Each computes tiles of 128 rows, of which each of two warpgroups has 64: of
// queries, for their gradient, and of keys, for those of keys and values. A step is one unit of 64 rows that they meet:
// unit[0] is its word, and unit[1] the query head among those of its key head where keys meet queries, else 0.
#pragma once

#include "plan/attention_steps.h"

namespace sparsek {

// Tiles of queries: n_tile = batch * heads_q + head. Their order is that of make_attention_steps.
AttentionSteps make_query_gradient_steps(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes);
// Tiles of keys, which meet the queries of all heads that share them: n_tile = batch * heads_k + head.
AttentionSteps make_key_gradient_steps(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes);
// Whether more than three of four steps of keys are used by one warpgroup alone. What rules hide within blocks does not
// count.
bool keys_mostly_alone(const AttentionShape& shape, const AttentionLists& lists);

}  // namespace sparsek
