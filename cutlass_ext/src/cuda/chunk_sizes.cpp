// SPDX-License-Identifier: Apache-2.0
#include "cuda/chunk_sizes.h"

#include <algorithm>

namespace sparsek::cuda {

ChunkSizes chunk_sizes(const BsrShape& matrix, const LaneLayout& lanes, int64_t element_bytes, int sm_count) {
  // As many chunks as an SM has warps at once, for all panels of columns, or, in ways that serve every block, so many
  // that those of one SM end at about the same time as those of others; of so many bytes that beginning one costs
  // little.
  constexpr int64_t kChunksOfSm = 32, kLeastOfSm = 4, kLeastBytes = 4096, kLeastWhole = 16;
  const int64_t all = matrix.nnzb + matrix.block_rows;
  const bool lines = lanes.way == LaneWay::kLines;  // panels follow each other, and what is read is B
  const int64_t of_block = element_bytes * matrix.block_m * matrix.block_k + (lines ? kBytesOfLane * kLanesOfLine : 0);
  const int64_t least = std::max<int64_t>(1, kLeastBytes / of_block);
  const int64_t at_once = lanes.ctas * lanes.warps * lanes.teams;
  const int64_t of_sm = at_once > 0 ? std::max(kLeastOfSm, at_once / (lines ? 1 : lanes.panels)) : kChunksOfSm;
  const auto count = static_cast<int32_t>(std::clamp<int64_t>(all / least, 1, sm_count * of_sm));
  return {count, std::max(kLeastWhole, all / count / 2)};
}

}  // namespace sparsek::cuda
