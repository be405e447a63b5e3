// SPDX-License-Identifier: Apache-2.0
#include "plan/attention_steps.h"

#include <algorithm>

#include "abi/error.h"
#include "plan/attention_units.h"

namespace sparsek {
namespace {

// The steps of a tile, in their order.
void append_steps(const AttentionUnits& units, std::vector<AttentionStep>& steps) {
  size_t at[2] = {0, 0};
  const auto left = [&](int g) { return units.alone[g].size() - at[g]; };
  size_t both = 0;
  for (; both + 1 < units.both.size(); both += 2) steps.push_back({{units.both[both], units.both[both + 1]}});
  if (both < units.both.size()) {
    const int longer = left(1) > left(0) ? 1 : 0;
    steps.push_back({{units.both[both], left(longer) > 0 ? units.alone[longer][at[longer]++] : 0}});
  }
  // Pairs of what is left follow a step of one unit of each warpgroup whose number is odd: the other one begins.
  const uint32_t single[2] = {left(0) % 2 != 0 ? units.alone[0][at[0]++] : 0,
                              left(1) % 2 != 0 ? units.alone[1][at[1]++] : 0};
  if (single[0] != 0 || single[1] != 0) {
    steps.push_back(single[0] != 0 ? AttentionStep{{single[0], single[1]}} : AttentionStep{{single[1], 0}});
  }
  const int first = single[0] != 0 ? 1 : 0;
  while (left(0) > 0 || left(1) > 0) {
    for (const int g : {first, 1 - first}) {
      if (left(g) == 0) continue;
      steps.push_back({{units.alone[g][at[g]], units.alone[g][at[g] + 1]}});
      at[g] += 2;
    }
  }
}

}  // namespace

bool has_attention_steps(const AttentionShape& shape) {
  return shape.block_q % kAttentionUnit == 0 && shape.block_k % kAttentionUnit == 0;
}

int32_t count_of(const AttentionSteps& list) {
  const size_t count = list.steps.size() + list.pieces.size();  // one of them has none
  if (count > INT32_MAX) {
    fail(SPARSEK_BAD_SIZE, "the tiles of attention have %zu steps, beyond int32: let heads share a layout", count);
  }
  return static_cast<int32_t>(count);
}

AttentionSteps make_attention_steps(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes) {
  const int64_t tiles = (shape.seq_q + kAttentionTile - 1) / kAttentionTile;
  AttentionSteps out;
  std::vector<int32_t> offsets = {0};  // (layout_batch, layout_heads, tiles)
  AttentionUnits units;
  std::vector<uint32_t> words[2];
  for (int64_t head = 0; head < shape.layout_batch * shape.layout_heads; ++head) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      for (int g = 0; g < 2; ++g) list_units(shape, lists, head * shape.query_blocks(), tile * 2 + g, words[g]);
      merge_units(words, units);
      append_steps(units, out.steps);
      offsets.push_back(count_of(out));
    }
  }
  const auto list_of = [&](int64_t head) { return shape.layout_head(head / shape.heads_q, head % shape.heads_q); };
  const int64_t group = shape.heads_q / shape.heads_k;
  append_tiles({shape.batch * shape.heads_q, tiles, heads_at_once(shape, shape.seq_k, group, l2_bytes)}, offsets,
               list_of, out);
  return out;
}

bool mostly_alone(const AttentionSteps& list) {
  const auto is_alone = [](const AttentionStep& step) {
    return ((step.unit[0] | step.unit[1]) & kEitherUses) != kEitherUses;
  };
  const int64_t alone = std::count_if(list.steps.begin(), list.steps.end(), is_alone);
  return 2 * alone > static_cast<int64_t>(list.steps.size());
}

}  // namespace sparsek
