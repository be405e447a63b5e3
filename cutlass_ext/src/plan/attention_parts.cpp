// SPDX-License-Identifier: Apache-2.0
#include "plan/attention_parts.h"

#include <algorithm>
#include <utility>

namespace sparsek {

int32_t attention_parts(const AttentionSteps& list, int64_t sm_count, int64_t queries) {
  constexpr int64_t kLeastSteps = 4;  // of a part
  // What it takes to write parts in fp32 and to join them, in steps: docs/notes/attention-general.md.
  const int64_t joining = 6 + std::min<int64_t>(queries, kAttentionTile) * 3 / 32;
  const auto tiles = static_cast<int64_t>(list.tiles.size());
  if (tiles == 0) return 1;
  int64_t longest = 0;
  for (const WorkTile& tile : list.tiles) longest = std::max<int64_t>(longest, tile.entry_count);
  const int64_t parts = std::max<int64_t>(std::min(sm_count / tiles, longest / kLeastSteps), 1);
  return longest - (longest + parts - 1) / parts >= joining ? static_cast<int32_t>(parts) : 1;
}

void split_tiles(AttentionSteps& list, int32_t parts, int64_t heads) {
  std::vector<WorkTile> tiles;
  tiles.reserve(list.tiles.size() * static_cast<size_t>(parts));
  for (const WorkTile& tile : list.tiles) {
    for (int32_t i = 0; i < parts; ++i) {
      const auto at = [&](int64_t part) { return static_cast<int32_t>(tile.entry_count * part / parts); };
      WorkTile part = tile;
      part.n_tile += static_cast<int32_t>(i * heads);
      part.entry_begin += at(i);
      part.entry_count = at(i + 1) - at(i);
      tiles.push_back(part);
    }
  }
  list.tiles = std::move(tiles);
}

}  // namespace sparsek
