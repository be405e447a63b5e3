// SPDX-License-Identifier: Apache-2.0
// An element of a plan's list of tiles (plan/plan.h). Kernels include this, and not what only the host needs.
#pragma once

#include <cstdint>

namespace sparsek {

constexpr int32_t kNoBlock = -1;

// One CTA tile of C, or a part of one; 16 bytes, so that a kernel reads it with one load.
struct WorkTile {
  int32_t m_tile;       // the row group
  int32_t n_tile;       // the panel of columns; for a part see below
  int32_t entry_begin;  // first entry of the tile's row group, or of the part
  int32_t entry_count;  // 0: the tile holds beta * C only
};

// A part has an n_tile below 0: ~n_tile holds the panel in its lowest kPanelBits bits, and above them the place of the
// part's sums in the workspace. So a kernel that gets no parts uses n_tile unchanged.
constexpr int32_t kPanelBits = 20;
constexpr int32_t kMostParts = 1 << (31 - kPanelBits);

constexpr int32_t part_tile(int32_t panel, int32_t part) { return ~(part << kPanelBits | panel); }
// First column of C = panel_of(tile) * tile_n.
constexpr int32_t panel_of(const WorkTile& tile) {
  return tile.n_tile < 0 ? ~tile.n_tile & ((1 << kPanelBits) - 1) : tile.n_tile;
}
// The place of a part's sums, or -1 for a whole tile.
constexpr int32_t part_of(const WorkTile& tile) { return tile.n_tile < 0 ? ~tile.n_tile >> kPanelBits : -1; }

// A tile of C whose parts have to be added up: consecutive parts from first_part on, in this order.
struct SplitTile {
  int32_t m_tile, n_tile;  // row group and panel
  int32_t first_part, parts;
};

}  // namespace sparsek
