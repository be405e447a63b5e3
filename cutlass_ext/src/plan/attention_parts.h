// SPDX-License-Identifier: Apache-2.0
// Lists of the forward pass whose tiles are fewer than the CTAs that compute them, as with few queries: the steps of
// each tile are split into parts, whose outputs are then joined by their lse.
#pragma once

#include "plan/attention_steps.h"

namespace sparsek {

// How many parts each tile has, so that all are computed at once and more steps are saved than joining them takes,
// which grows with the queries of a tile; 1: none is split. queries: of a head. It does not depend on how many CTAs
// compute the tiles, since the order of sums follows from the parts.
int32_t attention_parts(const AttentionSteps& list, int64_t sm_count, int64_t queries);

// Splits each tile into so many parts, some of which may be empty. n_tile of part i is that of the tile plus i * heads;
// heads: batch * heads_q.
void split_tiles(AttentionSteps& list, int32_t parts, int64_t heads);

}  // namespace sparsek
