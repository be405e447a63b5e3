// SPDX-License-Identifier: Apache-2.0
// The work of a forward kernel that computes tiles of 128 queries, of which each of two warpgroups has 64. A step is
// two units of 64 keys, each of which one warpgroup uses or both.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/attention_step.h"
#include "plan/work_tile.h"

namespace sparsek {

struct AttentionShape;
struct AttentionLists;

// Whether blocks consist of whole units.
bool has_attention_steps(const AttentionShape& shape);

struct AttentionSteps {
  std::vector<AttentionStep> steps;
  std::vector<AttentionPieces> pieces;  // in place of steps, see plan/attention_pieces.h
  int32_t box = kAttentionUnit;         // rows that follow each other wherever they are met, 16, 32 or 64
  // In the order in which they are to be begun: m_tile is the tile of queries, n_tile = batch * heads_q + head,
  // and entries are steps.
  std::vector<WorkTile> tiles;
};

// How many steps there are. SPARSEK_BAD_SIZE where that is beyond what a tile names its steps by.
int32_t count_of(const AttentionSteps& list);

// Of a tile's steps, those that both warpgroups use come first. Of the others, no two that one warpgroup alone uses
// follow each other where the other one has steps left: it keeps the values of its last step until it has the keys of
// its next, or with three stages its values, so that with more between them the loads of these would wait for it, and
// it for them. Tiles of heads whose keys and values take up no more than l2_bytes follow each other, long ones first.
AttentionSteps make_attention_steps(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes);

// Whether more than half of the steps are used by one warpgroup alone.
bool mostly_alone(const AttentionSteps& list);

}  // namespace sparsek
