// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/pack_fp64.h"
#include "cuda/pack_planes.h"
#include "cuda/stage_lists.h"

namespace sparsek::cuda {

constexpr int64_t kMostStageParts = 8;

// How many CTAs share each tile, each with a part of its stages, where there are fewer tiles than the CTAs that run at
// once. It follows from sizes alone. groups: of rows. panels: of columns of C. all_stages: those of a row group whose
// rows have blocks everywhere.
constexpr int32_t parts_of_tiles(int64_t groups, int64_t all_stages, int64_t least_stages, int64_t least_of_part,
                                 int64_t nnzb, int64_t panels, int64_t at_once) {
  const int64_t tiles = groups * panels;
  if (tiles == 0) return 1;
  const int64_t stages = std::min(all_stages, nnzb / groups);  // that have blocks, at most
  if (stages < least_stages) return 1;
  return static_cast<int32_t>(
      std::clamp(std::min(at_once / tiles, stages / least_of_part), int64_t{1}, kMostStageParts));
}

// Of kernels that scatter: what the parts' sums take to be added up is about 10 stages.
constexpr int32_t parts_of_tiles(const ListSizes& sizes, int64_t nnzb, int64_t panels, int64_t at_once) {
  return parts_of_tiles(sizes.groups, sizes.stages, /*least_stages=*/16, /*least_of_part=*/4, nnzb, panels, at_once);
}

// Of kernels that pack planes: it is about 15 of their shorter stages.
constexpr int32_t parts_of_tiles(const PlaneStripSizes& sizes, int64_t nnzb, int64_t panels, int64_t at_once) {
  return parts_of_tiles(sizes.groups, sizes.strips, /*least_stages=*/48, /*least_of_part=*/16, nnzb, panels, at_once);
}

// Of kernels that pack fp64: it is about 8 of their strips.
inline int32_t parts_of_tiles(const StripSizes& sizes, int64_t nnzb, int64_t panels, int64_t at_once) {
  return parts_of_tiles(sizes.groups, sizes.strips, /*least_stages=*/32, /*least_of_part=*/16, nnzb, panels, at_once);
}

}  // namespace sparsek::cuda
