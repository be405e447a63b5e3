// SPDX-License-Identifier: Apache-2.0
#include "plan/attention_units.h"

#include <algorithm>

namespace sparsek {

void list_units(const AttentionShape& shape, const AttentionLists& lists, int64_t first_row, int64_t unit_row,
                std::vector<uint32_t>& words) {
  words.clear();
  const AttentionBand band = shape.band(shape.seq_q, shape.seq_k);
  const int64_t i = unit_row * kAttentionUnit, i_end = std::min(i + kAttentionUnit, shape.seq_q);
  if (i >= shape.seq_q) return;
  const int64_t row = first_row + i / shape.block_q, per_block = shape.block_k / kAttentionUnit;
  for (int32_t e = lists.offsets[row]; e < lists.offsets[row + 1]; ++e) {
    const int32_t entry = lists.entries[e];
    const int64_t first = (entry & ~kPartialBlock) * per_block;
    for (int64_t unit = first; unit < first + per_block; ++unit) {
      const int64_t j = unit * kAttentionUnit, j_end = std::min(j + kAttentionUnit, shape.seq_k);
      if (j >= shape.seq_k) break;
      auto word = static_cast<uint32_t>(unit);
      if ((entry & kPartialBlock) != 0) {
        const Cover seen = cover(band, i, i_end, j, j_end);
        if (seen == Cover::kNone) continue;
        if (seen == Cover::kPartial || j_end - j < kAttentionUnit) word |= kPartialUnit;
      }
      words.push_back(word);
    }
  }
}

void merge_units(const std::vector<uint32_t> (&words)[2], AttentionUnits& units) {
  units.both.clear();
  for (auto& alone : units.alone) alone.clear();
  const auto number = [](uint32_t word) { return word & kUnitNumber; };
  auto a = words[0].begin(), b = words[1].begin();
  while (a != words[0].end() || b != words[1].end()) {
    if (b == words[1].end() || (a != words[0].end() && number(*a) < number(*b))) {
      units.alone[0].push_back(*a++ | kFirstUses);
    } else if (a == words[0].end() || number(*b) < number(*a)) {
      units.alone[1].push_back(*b++ | kSecondUses);
    } else {
      units.both.push_back(*a++ | *b++ | kEitherUses);
    }
  }
}

int64_t heads_at_once(const AttentionShape& shape, int64_t rows, int64_t sharing, int64_t l2_bytes) {
  constexpr int64_t kElementBytes = 2;
  const int64_t bytes = std::max<int64_t>(rows, 1) * (shape.head_size + shape.head_size_v) * kElementBytes;
  return std::max<int64_t>(l2_bytes / bytes, 1) * sharing;
}

void append_tiles(const AttentionTileOrder& order, const std::vector<int32_t>& offsets,
                  const std::function<int64_t(int64_t head)>& list_of, AttentionSteps& out) {
  for (int64_t first = 0; first < order.heads; first += order.at_once) {
    const size_t begin = out.tiles.size();
    for (int64_t head = first; head < std::min(order.heads, first + order.at_once); ++head) {
      const int64_t list = list_of(head) * order.tiles_of_head;
      for (int64_t tile = 0; tile < order.tiles_of_head; ++tile) {
        const int32_t from = offsets[list + tile];
        out.tiles.push_back(
            {static_cast<int32_t>(tile), static_cast<int32_t>(head), from, offsets[list + tile + 1] - from});
      }
    }
    std::stable_sort(out.tiles.begin() + static_cast<std::ptrdiff_t>(begin), out.tiles.end(),
                     [](const WorkTile& a, const WorkTile& b) { return a.entry_count > b.entry_count; });
  }
}

}  // namespace sparsek
