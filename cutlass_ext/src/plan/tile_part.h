// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/work_tile.h"

namespace sparsek {

// Part `part` of `parts` parts of a tile along K: consecutive ranges of its entries of nearly equal length.
constexpr WorkTile tile_part(const WorkTile& tile, int32_t part, int32_t parts) {
  const auto begin = static_cast<int32_t>(int64_t{tile.entry_count} * part / parts);
  const auto end = static_cast<int32_t>(int64_t{tile.entry_count} * (part + 1) / parts);
  return {tile.m_tile, tile.n_tile, tile.entry_begin + begin, end - begin};
}

}  // namespace sparsek
