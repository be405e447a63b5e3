// SPDX-License-Identifier: Apache-2.0
// The parts of attention's tiles (plan/attention_parts.h): those of a tile have its steps, one after the other.
#include "attention_case.h"
#include "plan/attention_parts.h"

using namespace sparsek;

namespace {

AttentionSteps random_list(int64_t heads) {
  AttentionSteps list;
  int32_t begin = 0;
  for (int32_t head = 0; head < heads; ++head) {
    for (int32_t tile = 0; tile < 3; ++tile) {
      const int32_t count = draw(0, 3) == 0 ? 0 : draw(0, 60);
      list.tiles.push_back({tile, head, begin, count});
      begin += count;
    }
  }
  return list;
}

void check(const AttentionSteps& list, int64_t heads, int32_t parts) {
  AttentionSteps split = list;
  split_tiles(split, parts, heads);
  if (split.tiles.size() != list.tiles.size() * static_cast<size_t>(parts)) wrong("not so many parts");
  for (size_t i = 0; i < list.tiles.size(); ++i) {
    const WorkTile& whole = list.tiles[i];
    int32_t next = whole.entry_begin, least = whole.entry_count, most = 0;
    for (int32_t part = 0; part < parts; ++part) {
      const WorkTile& own = split.tiles[i * static_cast<size_t>(parts) + static_cast<size_t>(part)];
      if (own.m_tile != whole.m_tile || own.n_tile != whole.n_tile + part * heads) wrong("the place of a part");
      if (own.entry_begin != next) wrong("steps between parts");
      next += own.entry_count;
      least = std::min(least, own.entry_count);
      most = std::max(most, own.entry_count);
    }
    if (next != whole.entry_begin + whole.entry_count) wrong("steps are missing");
    if (most > least + 1) wrong("uneven parts");
  }
}

}  // namespace

int main() {
  if (attention_parts({}, 132, 1) != 1) wrong("parts of nothing");
  // Four parts of 20 steps save 15. Joining takes 18 with tiles of 128 queries, and 6 with one.
  AttentionSteps two;
  for (int i = 0; i < 2; ++i) two.tiles.push_back({0, i, 20 * i, 20});
  if (attention_parts(two, 8, 128) != 1) wrong("parts that save less than joining takes");
  if (attention_parts(two, 8, 1) != 4) wrong("parts of one query");
  for (int i = 0; i < 300; ++i) {
    const int64_t heads = draw(1, 5);
    const AttentionSteps list = random_list(heads);
    const int32_t workers = draw(1, 132), parts = attention_parts(list, workers, draw(1, 200));
    const auto tiles = static_cast<int32_t>(list.tiles.size());
    if (parts < 1 || (parts > 1 && parts * tiles > workers)) wrong("more parts than CTAs");
    check(list, heads, parts);
    check(list, heads, draw(1, 9));
  }
}
