// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/lane_layout.h"
#include "plan/row_chunks.h"

namespace sparsek::cuda {

// CTAs of a product: each has as many chunks as teams, and a panel of columns.
constexpr int32_t ctas_of(int32_t chunks, const LaneLayout& lanes, int32_t panels) {
  const int32_t of_cta = lanes.warps * lanes.teams;
  return (chunks + of_cta - 1) / of_cta * panels;
}

// What kernels read that take the matrix in chunks (plan/row_chunks.h), and the sums of rows that lie in several.
struct RowChunks {
  const RowChunk* chunks;  // (count)
  const int32_t* row_ptr;  // (block_rows + 1): entries of each block row
  int32_t count, block_rows;
  LaneLayout lanes;
  // (count, 2, block_m, panels * columns): of a chunk's first block row, if it began before; of its last one, if it
  // goes on in the next chunk and began in this one; of double for fp64, else of float. null: no block row is in two
  // chunks.
  void* sums;
};

}  // namespace sparsek::cuda
