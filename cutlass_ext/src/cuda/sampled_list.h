// SPDX-License-Identifier: Apache-2.0
// The work list of the kernels of cuda/sampled_wgmma.cuh, made on the device from the index.
//
// A column of Y is loaded once for both warpgroups. So the cells that both strips of a pair have come first, in tiles
// of nothing else. The rest, some cells in both, some in one of them, is computed in tiles of both strips, or of one
// strip each, whichever loads less.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cuda/index_verdict.h"
#include "cuda/layout.h"
#include "cuda/sampled_tile.h"
#include "plan/bsr_index.h"

namespace sparsek::cuda {

struct SampledGrid {
  int32_t block_m, block_k, block_rows;
  int32_t width;           // of a cell
  int32_t blocks;          // of a cell, above one another
  int32_t cells_of_block;  // side by side, of each strip
  int32_t strips_of_row;   // of a block row; 1 where it has no more than one
  int32_t most_cells;      // of a warpgroup: 256 / width, or fewer, so that there are tiles for all CTAs
  int32_t workers;         // CTAs that run at once
  bool may_absorb;         // full tiles may have a fifth cell
  int64_t pairs;
  int64_t capacity;  // tiles

  int32_t tile_words() const { return sampled_tile_words(width, blocks); }
};

// Whether there are such lists for blocks of this size.
bool can_list_sampled(const BsrShape& shape);
// workers: CTAs that run at once.
SampledGrid sampled_grid(const BsrShape& shape, int32_t workers);

// The arrays of a list.
struct SampledList {
  int32_t* tiles;    // (capacity, tile words)
  int32_t* cells;    // (pairs, 3): cells of both strips, of the upper one alone, of the lower one alone
  int32_t* places;   // (kSampledCosts * pairs + 1): where the tiles of a pair begin; the last is their number
  int32_t* absorbs;  // (1): whether full tiles have a fifth cell
};

constexpr int kSampledCosts = 12;  // tiles are sorted by their cost

// Where they lie within a block of memory.
class SampledListLayout {
 public:
  SampledListLayout(const SampledGrid& grid, Layout& layout);
  SampledList within(std::byte* memory) const;

 private:
  size_t tiles_, cells_, places_, absorbs_;
};

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
void prepare_sampled_list();
// Enqueues the making of a list. That of a faulty index is empty.
void enqueue_sampled_list(const CheckedIndex& index, const SampledGrid& grid, const SampledList& to,
                          cudaStream_t stream);

}  // namespace sparsek::cuda
