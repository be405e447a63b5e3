// SPDX-License-Identifier: Apache-2.0
// A of a product, written to dense tiles for kernel family "dmma_packed": strips of 64 rows by 16 columns, of fp64,
// with zeros where no block is. All of it lies in the product's workspace, or
// is kept by the plan (value_layout.h).
//
//   tiles   (row groups, strips) of (64 rows, 16 columns), K-major, swizzled over 128 bytes, as a stage lies in shared
//           memory. Of strips, what is not listed is not written.
//   bounds  of the block rows and parts (row_bounds.h)
//   counts  (row groups, parts): 1 and how many strips of the part have a block. A part is part_strips strips, or the
//           last ones.
//   totals  (row groups): how many have one
//   listed  (row groups, strips): the numbers of these, in ascending order, in bits 0 to 23; bit 24 + u: rows 8 u to
//           8 u + 7 have a block. Others of its rows are not written.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

#include "cuda/launch_args.h"
#include "cuda/row_bounds.h"

namespace sparsek::cuda {

constexpr int kStripRows = 64, kStripColumns = 16;
constexpr int kStripBytes = kStripRows * kStripColumns * 8;
constexpr int kStripBits = 24;
constexpr int kMostPackedBlock = 64;  // rows and columns of a block
constexpr int64_t kLeastPartStrips = 16, kMostPartStrips = 1024;
constexpr int64_t kMostStripBytes = int64_t{1} << 30;

struct StripSizes {
  int64_t block_rows, groups, strips;
  int64_t parts, part_strips;  // of a row group, each written by one CTA

  static constexpr int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
  constexpr int64_t tile_bytes() const { return groups * strips * kStripBytes; }
  constexpr int64_t count_bytes() const { return aligned(groups * parts * int64_t{sizeof(int32_t)}); }
  constexpr int64_t total_bytes() const { return aligned(groups * int64_t{sizeof(int32_t)}); }
  constexpr int64_t list_bytes() const { return aligned(groups * strips * int64_t{sizeof(uint32_t)}); }
  constexpr int64_t bound_bytes() const { return bytes_of_bounds(block_rows, parts); }
  constexpr int64_t bytes() const {
    return tile_bytes() + bound_bytes() + count_bytes() + total_bytes() + list_bytes();
  }
};

// Parts so that each SM of a large GPU has several, whose waits for memory overlap.
inline StripSizes strip_sizes(int64_t rows, int64_t cols, int32_t block_m) {
  constexpr int64_t kCtas = 2112;
  StripSizes sizes = {};
  sizes.block_rows = (rows + block_m - 1) / block_m;
  sizes.groups = (rows + kStripRows - 1) / kStripRows;
  sizes.strips = std::max<int64_t>((cols + kStripColumns - 1) / kStripColumns, 1);
  sizes.part_strips = std::clamp((sizes.groups * sizes.strips + kCtas - 1) / kCtas, kLeastPartStrips, kMostPartStrips);
  sizes.parts = (sizes.strips + sizes.part_strips - 1) / sizes.part_strips;
  return sizes;
}

// Where they lie in that memory.
struct StripMemory {
  char* tiles;
  int32_t *bounds, *counts, *totals;
  uint32_t* listed;

  StripMemory(const StripSizes& sizes, void* workspace)
      : tiles(static_cast<char*>(workspace)),
        bounds(reinterpret_cast<int32_t*>(tiles + sizes.tile_bytes())),
        counts(reinterpret_cast<int32_t*>(tiles + sizes.tile_bytes() + sizes.bound_bytes())),
        totals(reinterpret_cast<int32_t*>(reinterpret_cast<char*>(counts) + sizes.count_bytes())),
        listed(reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(totals) + sizes.total_bytes())) {}
};

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_pack_fp64();

// Writes the strips of a product whose plan has chunks.
cudaError_t pack_fp64(const LaunchArgs& args, const StripSizes& sizes, const StripMemory& to);

}  // namespace sparsek::cuda
