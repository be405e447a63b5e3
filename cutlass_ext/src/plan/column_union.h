// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace sparsek {

// Storage indices [begin, end) of the blocks of a block row; may be empty.
struct BlockRange {
  int32_t begin = 0, end = 0;
};

// Makes the union lists of row groups, one after the other. Not thread-safe.
class ColumnUnion {
 public:
  // col_idx: block columns of all blocks, strictly increasing within a range; it must outlive this.
  ColumnUnion(const std::vector<int32_t>& col_idx, int32_t block_k) : col_idx_(col_idx.data()), block_k_(block_k) {}

  // Appends the first rows of B of the union of the slots' block columns, in increasing order, to entry_k; and to
  // entry_block, for each of
  // these columns, the storage index of every slot's block, or kNoBlock: (columns, slots).
  void append(const std::vector<BlockRange>& slots, std::vector<int32_t>& entry_k, std::vector<int32_t>& entry_block);

 private:
  void append_one(BlockRange slot, std::vector<int32_t>& entry_k, std::vector<int32_t>& entry_block) const;
  void append_two(BlockRange first, BlockRange second, std::vector<int32_t>& entry_k,
                  std::vector<int32_t>& entry_block) const;
  void append_near(const std::vector<BlockRange>& slots, int32_t first_col, std::vector<int32_t>& entry_k,
                   std::vector<int32_t>& entry_block);
  void append_scattered(const std::vector<BlockRange>& slots, std::vector<int32_t>& entry_k,
                        std::vector<int32_t>& entry_block);

  const int32_t* col_idx_;
  int32_t block_k_;
  std::vector<uint64_t> present_;  // a bit for each column of a group; all clear between groups
  std::vector<int32_t> place_;     // entry of each column within the group
  std::vector<int32_t> next_;      // next storage index of each slot
};

}  // namespace sparsek
