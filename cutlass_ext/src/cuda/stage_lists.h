// SPDX-License-Identifier: Apache-2.0
// A of a product, listed by stages for kernel family "wgmma_scatter". A stage is 128 rows by up to 64 columns, and each
// 32 of its rows, a quarter, are a list of the elements of their blocks: where each lies in a dense quarter, and what
// it is. Elements have 16 bits. All of it lies in the product's workspace.
//
//   bounds    (block rows, stages + 1), row-major: the row's first entry in this stage, or behind it
//   lists     (row groups, stages, 4), row-major: where the list of a quarter lies
//   elements  (chunks of all lists, 32, 4): bits 0 to 11: the place, in bytes, in a quarter, which is (32 rows, 64
//             columns), K-major, swizzled over 128 bytes; bits 16 to 31: the element. Element i of a chunk of 128 is at
//             (i % 32, i / 32), so that the lanes of a warp, which read four each, write neighbours of the list
//             together: these lie in different banks more often than others. The last element fills the last 32 of a
//             list.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/launch_args.h"

namespace sparsek::cuda {

constexpr int kListRows = 128, kListColumns = 64;  // of a stage; columns at most
constexpr int kQuarters = 4, kQuarterRows = kListRows / kQuarters;
constexpr int kListRowBytes = kListColumns * 2;
constexpr int kFour = 4;  // elements that a lane reads together
constexpr int kChunk = 32 * kFour;
constexpr uint32_t kPlaceBits = 0xfff;

// Of an element, in a quarter.
constexpr uint32_t place_of(uint32_t row, uint32_t column) {
  return row * kListRowBytes + (column / 8 ^ row % 8) * 16 + column % 8 * 2;
}

// Element i of a row's blocks in a stage is in its block i / block_k, at most kListColumns of them.
constexpr uint32_t reciprocal_of(int32_t block_k) { return (65536u + block_k - 1) / block_k; }
constexpr uint32_t block_of(uint32_t i, uint32_t reciprocal) { return i * reciprocal >> 16; }

// The first chunk of a list: behind the elements of the lists before, with room for one chunk more in each.
constexpr int64_t first_chunk(int64_t elements_before, int64_t lists_before) {
  return elements_before / kChunk + lists_before;
}
constexpr int kMostStages = 512;
constexpr int64_t kMostBoundBytes = int64_t{64} << 20;
constexpr int64_t kMostListBytes = int64_t{2} << 30;
constexpr int64_t kMostTiles = int64_t{1} << 30;

struct StageList {
  int32_t begin;  // chunk
  int32_t count;  // elements
};

struct ListSizes {
  int32_t columns;  // of A in a stage: whole blocks
  int64_t block_rows, stages, groups;
  int64_t elements;  // of all blocks

  constexpr int64_t lists() const { return groups * stages * kQuarters; }
  constexpr int64_t chunks() const { return elements / kChunk + lists(); }
  // Each a multiple of 256, so that what lies behind is aligned.
  static constexpr int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
  constexpr int64_t bound_bytes() const { return aligned((stages + 1) * block_rows * int64_t{sizeof(int32_t)}); }
  constexpr int64_t list_bytes() const { return aligned(lists() * int64_t{sizeof(StageList)}); }
  constexpr int64_t bytes() const {
    return bound_bytes() + list_bytes() + aligned(chunks() * kChunk * int64_t{sizeof(uint32_t)});
  }
};

// block_k: at most kListColumns.
constexpr ListSizes list_sizes(int64_t rows, int64_t cols, int64_t nnzb, int32_t block_m, int32_t block_k) {
  const int32_t columns = kListColumns / block_k * block_k;
  const int64_t stages = cols > 0 ? (cols + columns - 1) / columns : 1;  // a product has a column at least
  return {columns, (rows + block_m - 1) / block_m, stages, (rows + kListRows - 1) / kListRows,
          nnzb * block_m * block_k};
}

// Where they lie in a product's workspace.
struct StageLists {
  int32_t* bounds;
  StageList* lists;
  uint32_t* elements;

  StageLists(const ListSizes& sizes, void* workspace)
      : bounds(static_cast<int32_t*>(workspace)),
        lists(reinterpret_cast<StageList*>(static_cast<char*>(workspace) + sizes.bound_bytes())),
        elements(reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(lists) + sizes.list_bytes())) {}
};

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_stage_lists();

// Writes the lists of a product whose plan has chunks.
cudaError_t list_stages(const LaunchArgs& args, const ListSizes& sizes, const StageLists& to);

}  // namespace sparsek::cuda
