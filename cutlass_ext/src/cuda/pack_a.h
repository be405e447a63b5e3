// SPDX-License-Identifier: Apache-2.0
// A of a product, gathered into dense tiles for kernel family "wgmma_packed": 128 rows, a row group of the plan, by as
// many of its entries as a stage holds, with zeros where a row has no block. Elements have 16 bits.
//
//   tiles   (row groups, stages of a group) of (128 rows, 64 columns), K-major, swizzled over 128 bytes, as a stage
//           lies in shared memory. Columns from the entries' last one on, rounded up to 16, are not written.
//   present (row groups, stages of a group): bit 2 u + h: one of the 64 rows of half h has a block in the 16 columns
//           from 16 u on
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/launch_args.h"

namespace sparsek::cuda {

constexpr int kPackRows = 128, kPackColumns = 64, kPackUnit = 16;  // of a stage; columns of a wgmma instruction
constexpr int kPackStageBytes = kPackRows * kPackColumns * 2;

struct PackSizes {
  int32_t block_k;  // at most kPackColumns
  int32_t entries;  // of a stage
  int32_t units;    // of kPackUnit columns in a stage
  int64_t groups, stages_of_group;

  constexpr int32_t columns() const { return entries * block_k; }
  constexpr int64_t stages() const { return groups * stages_of_group; }
  // A multiple of 256, so that what lies behind is aligned.
  constexpr int64_t bytes() const {
    return (stages() * (kPackStageBytes + int64_t{sizeof(uint32_t)}) + 255) / 256 * 256;
  }
};

// As many entries as leave the least of a stage's units empty, and of those the most.
constexpr int32_t entries_of_stage(int32_t block_k) {
  constexpr int32_t kMost = 32;  // the lanes of a warp
  int32_t best = 1;
  for (int32_t entries = 1; entries <= kMost && entries * block_k <= kPackColumns; ++entries) {
    const auto whole = [&](int32_t of) { return (of * block_k + kPackUnit - 1) / kPackUnit * kPackUnit; };
    if (int64_t{entries} * whole(best) >= int64_t{best} * whole(entries)) best = entries;
  }
  return best;
}

constexpr PackSizes pack_sizes(const LaunchArgs& args) {
  const int32_t entries = entries_of_stage(args.block_k);
  const int64_t block_cols = (args.cols + args.block_k - 1) / args.block_k;
  return {args.block_k, entries, (entries * args.block_k + kPackUnit - 1) / kPackUnit,
          (args.rows + kPackRows - 1) / kPackRows, (block_cols + entries - 1) / entries};
}

// Where they lie in a product's workspace, or in what the plan keeps (value_layout.h).
struct PackMemory {
  char* tiles;
  uint32_t* present;

  PackMemory(const PackSizes& sizes, void* workspace)
      : tiles(static_cast<char*>(workspace)),
        present(reinterpret_cast<uint32_t*>(tiles + sizes.stages() * kPackStageBytes)) {}
};

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_pack_a();

// Writes what the plan's entries name. A's values may lie at any elements.
cudaError_t pack_a(const LaunchArgs& args, const PackSizes& sizes, const PackMemory& to);

}  // namespace sparsek::cuda
