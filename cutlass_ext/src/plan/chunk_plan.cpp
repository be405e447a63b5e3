// SPDX-License-Identifier: Apache-2.0
#include "plan/chunk_plan.h"

namespace sparsek {

Plan make_chunk_plan(const BsrIndex& index, const PlanShape& shape) {
  check_depth(index);
  Plan plan;
  plan.shape = shape;
  plan.slot_rows = index.block_m;
  plan.row_ptr = index.row_ptr;
  plan.entry_k.reserve(index.col_idx.size());
  for (const int32_t col : index.col_idx) plan.entry_k.push_back(col * index.block_k);
  plan.entry_block = index.block_idx;
  const ChunkRule rule = {index.block_rows, shape.chunks, shape.longest_whole};
  plan.chunks.reserve(static_cast<size_t>(shape.chunks));
  for (int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
    plan.chunks.push_back(row_chunk(rule, plan.row_ptr.data(), chunk, index.block_idx.empty()));
  }
  return plan;
}

}  // namespace sparsek
