// SPDX-License-Identifier: Apache-2.0
#include "plan/panel_ends.h"

#include <algorithm>

namespace sparsek {

std::vector<int32_t> panel_ends(const Plan& plan) {
  std::vector<int32_t> ends(static_cast<size_t>((plan.shape.n + plan.shape.tile_n - 1) / plan.shape.tile_n));
  for (size_t i = 0; i < plan.tiles.size(); ++i) {
    ends[static_cast<size_t>(panel_of(plan.tiles[i]))] = static_cast<int32_t>(i) + 1;
  }
  for (size_t p = 1; p < ends.size(); ++p) ends[p] = std::max(ends[p], ends[p - 1]);
  return ends;
}

}  // namespace sparsek
