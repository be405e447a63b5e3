// SPDX-License-Identifier: Apache-2.0
#include "plan/attention_steps.h"

#include <algorithm>

#include "plan/attention.h"

namespace sparsek {
namespace {

// The units of a tile, ascending: those of both warpgroups, and those of one alone.
struct Units {
  std::vector<uint32_t> both, alone[2];
};

class TileUnits {
 public:
  TileUnits(const AttentionShape& shape, const AttentionLists& lists)
      : shape_(shape), lists_(lists), band_(shape.band(shape.seq_q, shape.seq_k)) {}

  // Of a tile of a layout's head, whose first layout row is given.
  const Units& of(int64_t first_row, int64_t tile) {
    units_.both.clear();
    for (auto& alone : units_.alone) alone.clear();
    list(first_row, tile * 2, kFirstUses, words_[0]);
    list(first_row, tile * 2 + 1, kSecondUses, words_[1]);
    merge();
    return units_;
  }

 private:
  // The words of 64 queries.
  void list(int64_t first_row, int64_t unit_row, uint32_t use, std::vector<uint32_t>& words) const {
    words.clear();
    const int64_t i = unit_row * kAttentionUnit, i_end = std::min(i + kAttentionUnit, shape_.seq_q);
    if (i >= shape_.seq_q) return;
    const int64_t row = first_row + i / shape_.block_q, per_block = shape_.block_k / kAttentionUnit;
    for (int32_t e = lists_.offsets[row]; e < lists_.offsets[row + 1]; ++e) {
      const int32_t entry = lists_.entries[e];
      const int64_t first = (entry & ~kPartialBlock) * per_block;
      for (int64_t unit = first; unit < first + per_block; ++unit) {
        const int64_t j = unit * kAttentionUnit, j_end = std::min(j + kAttentionUnit, shape_.seq_k);
        if (j >= shape_.seq_k) break;
        uint32_t word = static_cast<uint32_t>(unit) | use;
        if ((entry & kPartialBlock) != 0) {
          const Cover seen = cover(band_, i, i_end, j, j_end);
          if (seen == Cover::kNone) continue;
          if (seen == Cover::kPartial || j_end - j < kAttentionUnit) word |= kPartialUnit;
        }
        words.push_back(word);
      }
    }
  }

  void merge() {
    const auto number = [](uint32_t word) { return word & kUnitNumber; };
    auto a = words_[0].begin(), b = words_[1].begin();
    while (a != words_[0].end() || b != words_[1].end()) {
      if (b == words_[1].end() || (a != words_[0].end() && number(*a) < number(*b))) {
        units_.alone[0].push_back(*a++);
      } else if (a == words_[0].end() || number(*b) < number(*a)) {
        units_.alone[1].push_back(*b++);
      } else {
        units_.both.push_back(*a++ | *b++);
      }
    }
  }

  const AttentionShape& shape_;
  const AttentionLists& lists_;
  const AttentionBand band_;
  std::vector<uint32_t> words_[2];
  Units units_;
};

// The steps of a tile, in their order.
void append_steps(const Units& units, std::vector<AttentionStep>& steps) {
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

// Query heads that are computed at the same time.
int64_t heads_at_once(const AttentionShape& shape, int64_t l2_bytes) {
  constexpr int64_t kElementBytes = 2;
  const int64_t bytes = std::max<int64_t>(shape.seq_k, 1) * (shape.head_size + shape.head_size_v) * kElementBytes;
  return std::max<int64_t>(l2_bytes / bytes, 1) * (shape.heads_q / shape.heads_k);
}

}  // namespace

bool has_attention_steps(const AttentionShape& shape) {
  return shape.block_q % kAttentionUnit == 0 && shape.block_k % kAttentionUnit == 0;
}

AttentionSteps make_attention_steps(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes) {
  const int64_t tiles = (shape.seq_q + kAttentionTile - 1) / kAttentionTile;
  AttentionSteps out;
  std::vector<int32_t> offsets = {0};  // (layout_batch, layout_heads, tiles)
  TileUnits units(shape, lists);
  for (int64_t head = 0; head < shape.layout_batch * shape.layout_heads; ++head) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      append_steps(units.of(head * shape.query_blocks(), tile), out.steps);
      offsets.push_back(static_cast<int32_t>(out.steps.size()));
    }
  }
  const int64_t heads = shape.batch * shape.heads_q, at_once = heads_at_once(shape, l2_bytes);
  for (int64_t first = 0; first < heads; first += at_once) {
    const size_t begin = out.tiles.size();
    for (int64_t head = first; head < std::min(heads, first + at_once); ++head) {
      const int64_t batch = head / shape.heads_q;
      const int64_t row = shape.layout_row(batch, head % shape.heads_q);
      const int64_t list = shape.query_blocks() > 0 ? row / shape.query_blocks() * tiles : 0;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int32_t from = offsets[list + tile];
        out.tiles.push_back(
            {static_cast<int32_t>(tile), static_cast<int32_t>(head), from, offsets[list + tile + 1] - from});
      }
    }
    std::stable_sort(out.tiles.begin() + static_cast<std::ptrdiff_t>(begin), out.tiles.end(),
                     [](const WorkTile& a, const WorkTile& b) { return a.entry_count > b.entry_count; });
  }
  return out;
}

}  // namespace sparsek
