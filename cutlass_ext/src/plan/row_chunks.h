// SPDX-License-Identifier: Apache-2.0
// The rule by which a matrix is cut into chunks for kernels that read it once from its begin to its end: consecutive
// block rows with their blocks, about as much in each chunk whatever the length of rows. Both planners share it.
#pragma once

#include <cstdint>

namespace sparsek {

// A chunk: block rows [row_begin, row_end) and, of their blocks, those from entry_begin on before entry_end. Only its
// first row may have begun in a chunk before, and only its last one may go on in the next. 16 bytes, so that a kernel
// reads it with one load.
struct RowChunk {
  int32_t row_begin, row_end;
  int32_t entry_begin;
  int32_t entry_end;  // ~entry_end: blocks of values are not where their entries are, and entry_block says where
};

// How a matrix is cut: into `count` chunks, between rows where they are no longer than longest_whole blocks.
struct ChunkRule {
  int64_t block_rows;
  int32_t count;
  int64_t longest_whole;
};

// Where a chunk begins, and the one before it ends.
struct ChunkBegin {
  int64_t row, entry;  // entry > row_ptr[row]: within that row
};

// A block and a block row count as much. row_ptr: (block_rows + 1).
constexpr ChunkBegin chunk_begin(const ChunkRule& rule, const int32_t* row_ptr, int64_t chunk) {
  const int64_t entries = row_ptr[rule.block_rows];
  if (chunk >= rule.count) return {rule.block_rows, entries};
  const int64_t at = (entries + rule.block_rows) * chunk / rule.count;
  int64_t row = 0, beyond = rule.block_rows + 1;  // row_ptr[row] + row <= at
  while (beyond - row > 1) {
    const int64_t middle = row + (beyond - row) / 2;
    if (row_ptr[middle] + middle <= at) {
      row = middle;
    } else {
      beyond = middle;
    }
  }
  if (row == rule.block_rows) return {row, entries};
  const int64_t begin = row_ptr[row], end = row_ptr[row + 1], in_row = at - begin - row;
  if (end - begin > rule.longest_whole && in_row < end - begin) return {row, begin + in_row};
  if (2 * in_row > end - begin) return {row + 1, end};
  return {row, begin};
}

// in_place: each block of values is in the place of its entry.
constexpr RowChunk row_chunk(const ChunkRule& rule, const int32_t* row_ptr, int64_t chunk, bool in_place) {
  const ChunkBegin begin = chunk_begin(rule, row_ptr, chunk), end = chunk_begin(rule, row_ptr, chunk + 1);
  const bool goes_on = end.row < rule.block_rows && end.entry > row_ptr[end.row];
  const auto entry_end = static_cast<int32_t>(end.entry);
  return {static_cast<int32_t>(begin.row), static_cast<int32_t>(end.row + (goes_on ? 1 : 0)),
          static_cast<int32_t>(begin.entry), in_place ? entry_end : ~entry_end};
}

}  // namespace sparsek
