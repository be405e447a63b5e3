// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/stage_lists.h"

namespace sparsek::cuda {

constexpr int64_t kMostStageParts = 8;

// How many CTAs of kernels that scatter share each tile, each with a part of its stages, where there are fewer tiles
// than the CTAs that run at once; what the parts' sums take to be added up is about 10 stages. It follows from sizes
// alone. panels: of columns of C.
constexpr int32_t parts_of_tiles(const ListSizes& sizes, int64_t nnzb, int64_t panels, int64_t at_once) {
  constexpr int64_t kLeastStages = 16, kLeastOfPart = 4;
  const int64_t tiles = sizes.groups * panels;
  if (tiles == 0) return 1;
  const int64_t stages = std::min(sizes.stages, nnzb / sizes.groups);  // that have blocks, at most
  if (stages < kLeastStages) return 1;
  return static_cast<int32_t>(
      std::clamp(std::min(at_once / tiles, stages / kLeastOfPart), int64_t{1}, kMostStageParts));
}

}  // namespace sparsek::cuda
