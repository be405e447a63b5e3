// SPDX-License-Identifier: Apache-2.0
#include "plan/column_union.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "plan/plan.h"

namespace sparsek {

void ColumnUnion::append(const std::vector<BlockRange>& slots, std::vector<int32_t>& entry_k,
                         std::vector<int32_t>& entry_block) {
  if (slots.size() == 1) return append_one(slots[0], entry_k, entry_block);
  if (slots.size() == 2) return append_two(slots[0], slots[1], entry_k, entry_block);

  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  int32_t first_col = kNone, last_col = 0;
  int64_t blocks = 0;
  for (const BlockRange& slot : slots) {
    if (slot.begin == slot.end) continue;
    first_col = std::min(first_col, col_idx_[slot.begin]);
    last_col = std::max(last_col, col_idx_[slot.end - 1]);
    blocks += slot.end - slot.begin;
  }
  if (blocks == 0) return;
  // Reading a word of the bit set takes about as long as a block.
  const int64_t words = (static_cast<int64_t>(last_col) - first_col) / 64 + 1;
  if (words > 4 * blocks) return append_scattered(slots, entry_k, entry_block);
  if (static_cast<int64_t>(present_.size()) < words) {
    present_.resize(words);
    place_.resize(words * 64);
  }
  append_near(slots, first_col, entry_k, entry_block);
}

void ColumnUnion::append_one(BlockRange slot, std::vector<int32_t>& entry_k, std::vector<int32_t>& entry_block) const {
  const size_t begin = entry_k.size(), count = slot.end - slot.begin;
  entry_k.resize(begin + count);
  entry_block.resize(begin + count);
  for (size_t i = 0; i < count; ++i) {
    entry_k[begin + i] = col_idx_[slot.begin + i] * block_k_;
    entry_block[begin + i] = slot.begin + static_cast<int32_t>(i);
  }
}

// Merges without a branch on which of the two columns comes first: it would be mispredicted half of the time.
void ColumnUnion::append_two(BlockRange first, BlockRange second, std::vector<int32_t>& entry_k,
                             std::vector<int32_t>& entry_block) const {
  const size_t begin = entry_k.size();
  const size_t most = begin + (first.end - first.begin) + (second.end - second.begin);
  entry_k.resize(most);
  entry_block.resize(2 * most);
  int32_t* k = entry_k.data() + begin;
  int32_t* block = entry_block.data() + 2 * begin;
  const auto put = [&](int32_t column, int32_t a, int32_t b) {
    *k++ = column * block_k_;
    block[0] = a;
    block[1] = b;
    block += 2;
  };
  int32_t i = first.begin, j = second.begin;
  while (i < first.end && j < second.end) {
    const int32_t a = col_idx_[i], b = col_idx_[j];
    const bool in_first = a <= b, in_second = b <= a;
    put(std::min(a, b), in_first ? i : kNoBlock, in_second ? j : kNoBlock);
    i += in_first;
    j += in_second;
  }
  for (; i < first.end; ++i) put(col_idx_[i], i, kNoBlock);
  for (; j < second.end; ++j) put(col_idx_[j], kNoBlock, j);
  const size_t end = k - entry_k.data();
  entry_k.resize(end);
  entry_block.resize(2 * end);
}

// For columns that lie close together, the first being first_col: sets a bit for each column of the range.
void ColumnUnion::append_near(const std::vector<BlockRange>& slots, int32_t first_col, std::vector<int32_t>& entry_k,
                              std::vector<int32_t>& entry_block) {
  size_t words = 0;
  for (const BlockRange& slot : slots) {
    for (int32_t i = slot.begin; i < slot.end; ++i) {
      const uint32_t bit = col_idx_[i] - first_col;
      present_[bit / 64] |= uint64_t{1} << bit % 64;
    }
    if (slot.begin < slot.end) words = std::max<size_t>(words, (col_idx_[slot.end - 1] - first_col) / 64 + 1);
  }
  int32_t entries = 0;
  for (size_t word = 0; word < words; ++word) {
    for (uint64_t bits = present_[word]; bits != 0; bits &= bits - 1) {
      const int32_t bit = static_cast<int32_t>(word * 64 + __builtin_ctzll(bits));
      place_[bit] = entries++;
      entry_k.push_back((first_col + bit) * block_k_);
    }
    present_[word] = 0;
  }
  const size_t begin = entry_block.size();
  entry_block.resize(begin + slots.size() * entries, kNoBlock);
  int32_t* const group = entry_block.data() + begin;
  for (size_t s = 0; s < slots.size(); ++s) {
    for (int32_t i = slots[s].begin; i < slots[s].end; ++i)
      group[place_[col_idx_[i] - first_col] * slots.size() + s] = i;
  }
}

// For few columns far apart: repeatedly takes the least of the slots' next columns.
void ColumnUnion::append_scattered(const std::vector<BlockRange>& slots, std::vector<int32_t>& entry_k,
                                   std::vector<int32_t>& entry_block) {
  next_.clear();
  for (const BlockRange& slot : slots) next_.push_back(slot.begin);
  constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
  for (;;) {
    int32_t col = kNone;
    for (size_t s = 0; s < slots.size(); ++s) {
      if (next_[s] < slots[s].end) col = std::min(col, col_idx_[next_[s]]);
    }
    if (col == kNone) return;
    entry_k.push_back(col * block_k_);
    for (size_t s = 0; s < slots.size(); ++s) {
      const bool present = next_[s] < slots[s].end && col_idx_[next_[s]] == col;
      entry_block.push_back(present ? next_[s]++ : kNoBlock);
    }
  }
}

}  // namespace sparsek
