// SPDX-License-Identifier: Apache-2.0
#include "plan/row_groups.h"

#include "plan/column_union.h"

namespace sparsek {
namespace {

// Sets blocks[s] to the blocks of the block row in which slot s lies.
void find_blocks(const BsrIndex& index, const int64_t* slot_row, std::vector<BlockRange>& blocks) {
  for (size_t s = 0; s < blocks.size(); ++s) {
    const int64_t row = slot_row[s] / index.block_m;
    blocks[s] = slot_row[s] < index.rows ? BlockRange{index.row_ptr[row], index.row_ptr[row + 1]} : BlockRange{};
  }
}

// The block row in which the whole group lies, or -1 where there are several.
int64_t only_block_row(const BsrIndex& index, const int64_t* slot_row, int32_t slots) {
  const int64_t first = slot_row[0] / index.block_m, last = slot_row[slots - 1];
  return last < index.rows && last / index.block_m == first ? first : -1;
}

// From places in the index to storage indices.
void name_blocks(const BsrIndex& index, std::vector<int32_t>& entry_block) {
  if (index.block_idx.empty()) return;
  for (int32_t& block : entry_block) {
    if (block != kNoBlock) block = index.block_idx[block];
  }
}

}  // namespace

std::vector<EntryRange> make_row_groups(RowOrders& orders, Plan& plan) {
  const BsrIndex& index = orders.index();
  const int64_t tile_m = plan.shape.tile_m;
  const int32_t slots = plan.slots, slot_rows = plan.slot_rows;
  const int64_t group_count = (index.rows + tile_m - 1) / tile_m;

  plan.slot_row.resize(static_cast<size_t>(group_count * slots));
  for (size_t i = 0; i < plan.slot_row.size(); ++i) plan.slot_row[i] = static_cast<int64_t>(i) * slot_rows;
  if (plan.shape.any_rows && slots > 1 && slot_rows == index.block_m) {
    const std::vector<int32_t>& order = orders.of(slots).rows;
    for (size_t i = 0; i < order.size(); ++i) plan.slot_row[i] = static_cast<int64_t>(order[i]) * slot_rows;
  }

  std::vector<EntryRange> groups;
  groups.reserve(group_count);
  plan.entry_k.reserve(index.nnzb);
  plan.entry_block.reserve(index.nnzb * slots);
  ColumnUnion columns(index.col_idx, index.block_k);
  std::vector<BlockRange> blocks(slots);
  int64_t before = -1;
  for (int64_t g = 0; g < group_count; ++g) {
    const int64_t* const rows = plan.slot_row.data() + g * slots;
    const int64_t only = only_block_row(index, rows, slots);
    if (only >= 0 && only == before) {  // another group of the same block row
      groups.push_back(groups.back());
      continue;
    }
    before = only;
    find_blocks(index, rows, blocks);
    const int32_t begin = static_cast<int32_t>(plan.entry_k.size());
    columns.append(blocks, plan.entry_k, plan.entry_block);
    check_entries(plan.entries());
    groups.push_back({begin, static_cast<int32_t>(plan.entry_k.size())});
  }
  name_blocks(index, plan.entry_block);
  return groups;
}

}  // namespace sparsek
