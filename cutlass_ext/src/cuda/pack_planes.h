// SPDX-License-Identifier: Apache-2.0
// A of a product, written to dense tiles of three planes of bf16 (planes.h) for kernel family "planes_packed": strips
// of 128 rows by 16 columns, with zeros where no block is. All of it lies in the product's workspace, or is kept by
// the plan (value_layout.h).
//
//   tiles   (row groups, strips, halves) of (plane, 64 rows, 16 columns), K-major, swizzled over 32 bytes, as a stage
//           lies in shared memory. A half without a block is not written.
//   bounds  of the block rows and parts (row_bounds.h)
//   halves  (row groups, parts): a part is kPartStrips strips; bit 2 s + h: half h of its strip s has a block
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/launch_args.h"
#include "cuda/planes.h"
#include "cuda/row_bounds.h"

namespace sparsek::cuda {

constexpr int kPlaneStripColumns = 16;
constexpr int kHalfStripBytes = PieceBytes<kPlaneStripColumns>::kA;
constexpr int kPlaneStripBytes = kPlaneHalves * kHalfStripBytes;
constexpr int kPartStrips = 8;
constexpr int kPartColumns = kPartStrips * kPlaneStripColumns;
constexpr int64_t kMostPlaneStripBytes = int64_t{1} << 30;  // of A
constexpr int kMostPlaneStripBlock = 128;                   // rows and columns of a block

struct PlaneStripSizes {
  int64_t block_rows, groups, strips, parts;

  constexpr PlaneStripSizes(int64_t rows, int64_t cols, int32_t block_m)
      : block_rows((rows + block_m - 1) / block_m),
        groups((rows + kPlaneTileM - 1) / kPlaneTileM),
        strips(cols > 0 ? (cols + kPlaneStripColumns - 1) / kPlaneStripColumns : 1),
        parts((strips + kPartStrips - 1) / kPartStrips) {}
  static constexpr int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
  constexpr int64_t tile_bytes() const { return groups * strips * kPlaneStripBytes; }
  constexpr int64_t half_bytes() const { return aligned(groups * parts * int64_t{sizeof(uint16_t)}); }
  constexpr int64_t bound_bytes() const { return bytes_of_bounds(block_rows, parts); }
  constexpr int64_t bytes() const { return tile_bytes() + bound_bytes() + half_bytes(); }
};

// Where they lie in that memory.
struct PlaneStripMemory {
  char* tiles;
  int32_t* bounds;
  uint16_t* halves;

  PlaneStripMemory(const PlaneStripSizes& sizes, void* workspace)
      : tiles(static_cast<char*>(workspace)),
        bounds(reinterpret_cast<int32_t*>(tiles + sizes.tile_bytes())),
        halves(reinterpret_cast<uint16_t*>(tiles + sizes.tile_bytes() + sizes.bound_bytes())) {}
};
static_assert(kPartStrips * kPlaneHalves <= 16);

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_pack_planes();

// Writes the strips of a product whose plan has chunks.
cudaError_t pack_planes(const LaunchArgs& args, const PlaneStripSizes& sizes, const PlaneStripMemory& to);

}  // namespace sparsek::cuda
