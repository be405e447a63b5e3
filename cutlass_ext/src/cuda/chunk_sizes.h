// SPDX-License-Identifier: Apache-2.0
// Into how many chunks a matrix is cut for kernels that read it once.
#pragma once

#include <cstdint>

#include "abi/backend.h"
#include "cuda/lane_layout.h"

namespace sparsek::cuda {

struct ChunkSizes {
  int32_t count;
  int64_t longest_whole;  // of ChunkRule
};

// element_bytes: of A.
ChunkSizes chunk_sizes(const BsrShape& matrix, const LaneLayout& lanes, int64_t element_bytes, int sm_count);

}  // namespace sparsek::cuda
