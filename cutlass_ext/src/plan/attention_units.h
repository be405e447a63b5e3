// SPDX-License-Identifier: Apache-2.0
// Which units of 64 keys each unit of 64 queries meets, for the lists of steps.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plan/attention.h"
#include "plan/attention_step.h"
#include "plan/attention_steps.h"

namespace sparsek {

// The units that a tile meets, ascending: those of both warpgroups, and those of one alone.
struct AttentionUnits {
  std::vector<uint32_t> both, alone[2];
};

// words = the units of keys that 64 queries meet, without who uses them. first_row: the first layout row of their head.
void list_units(const AttentionShape& shape, const AttentionLists& lists, int64_t first_row, int64_t unit_row,
                std::vector<uint32_t>& words);

void merge_units(const std::vector<uint32_t> (&words)[2], AttentionUnits& units);

// How many of the heads, of which `sharing` consecutive ones meet the same `rows` of two operands, are computed at the
// same time, so that these stay in l2_bytes.
int64_t heads_at_once(const AttentionShape& shape, int64_t rows, int64_t sharing, int64_t l2_bytes);

struct AttentionTileOrder {
  int64_t heads, tiles_of_head, at_once;
};
// Appends the tiles of all heads: those of at_once heads follow each other, long ones first. Tile t of a head has the
// steps from offsets[list_of(head) * tiles_of_head + t] on.
void append_tiles(const AttentionTileOrder& order, const std::vector<int32_t>& offsets,
                  const std::function<int64_t(int64_t head)>& list_of, AttentionSteps& out);

}  // namespace sparsek
