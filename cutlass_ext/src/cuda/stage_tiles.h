// SPDX-License-Identifier: Apache-2.0
// Stages of A that kernel family "wgmma_scatter" would write to shared memory from its lists (cuda/stage_lists.h),
// written to device memory instead, where a plan keeps them. Elements have 16 bits.
//
//   tiles   (row groups, stages, quarters) of (32 rows, 64 columns), K-major, swizzled over 128 bytes, as a stage lies
//           in shared memory; in the order of the row group's steps. Those of stages that are left out are not written.
//           As in values in the order of lists, zeros of blocks are -0, and +0 stands for an absent element
#pragma once

#include "cuda/stage_values.h"

namespace sparsek::cuda {

constexpr int kQuarterTileBytes = kQuarterRows * kListRowBytes, kStageTileBytes = kQuarters * kQuarterTileBytes;

constexpr int64_t bytes_of_stage_tiles(const ListSizes& sizes) { return sizes.groups * sizes.stages * kStageTileBytes; }

// Whether a plan keeps the stages; else it keeps the values in the order of the lists, a fraction of that memory. Tiles
// of few columns are as fast with these where A is large (docs/notes/kept-values.md).
constexpr bool keeps_stages(const ListSizes& sizes, int tile_n) {
  constexpr int64_t kMost = int64_t{256} << 20, kMostOfNarrow = int64_t{64} << 20;
  return bytes_of_stage_tiles(sizes) <= (tile_n <= 64 ? kMostOfNarrow : kMost);
}
constexpr int64_t bytes_of_kept(const ListSizes& sizes, int tile_n) {
  return keeps_stages(sizes, tile_n) ? bytes_of_stage_tiles(sizes) : sizes.value_bytes();
}

// Loads the kernel. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_stage_tiles();

cudaError_t write_stage_tiles(const ListSizes& sizes, const StageLists& lists, const void* values, void* to,
                              cudaStream_t stream);

}  // namespace sparsek::cuda
