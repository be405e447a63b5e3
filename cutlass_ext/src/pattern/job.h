// SPDX-License-Identifier: Apache-2.0
// What is to be made or computed, with its arguments checked at the edge (abi/pattern.cpp, abi/values.cpp): for the
// host (pattern/host.h) and for a GPU (cuda/make_pattern.h, cuda/block_values.h).
#pragma once

#include <cstdint>
#include <vector>

#include "pattern/index_array.h"
#include "plan/bsr_index.h"
#include "sparsek.h"

namespace sparsek::pattern {

// An index, and the values that belong to it, as they are read.
struct Given {
  BsrShape shape;  // nnzb: an upper bound where it is bounded
  IndexArray row_ptr, col_idx, block_idx;
  const void* values;
  bool bounded, unsorted;

  // The block of values of an entry.
  SPARSEK_ANYWHERE int64_t block(int64_t entry) const { return block_idx.is_there() ? block_idx.get(entry) : entry; }
};

// An index as it is made. shape.nnzb is the capacity.
struct Made {
  BsrShape shape;
  IndexArray row_ptr, col_idx, block_idx, row_idx;  // the last two may not be there
  void* values;                                     // null: none are wanted
  int64_t* blocks;                                  // null: not wanted
  int64_t* fault;
};

enum class Make {
  kMask,
  kScores,  // above a threshold
  kTopScores,
  kTopColumns,
  kDense,
  kCsr,
  kBlocks,     // whose scores are above a threshold
  kTopBlocks,  // of the highest scores
  kCounts,
  kBlockDiagonal,
  kTransposed,
  kToCsr
};

struct MakeJob {
  Make what;
  Made to;
  sparsek_stream stream;

  // Elements of (block rows, ...):(ld, 1); of a dense matrix in `order`.
  const void* source;
  int64_t ld;
  bool bits;                   // of a mask
  sparsek_dtype dtype;         // of scores, of a dense matrix and of values
  IndexArray source_index;     // columns, counts or, of a matrix in COO, rows: the source again, else not there
  sparsek_dtype values_dtype;  // of kBlocks and kTopBlocks, where dtype is of scores
  sparsek_order order;
  sparsek_norm norm;
  double threshold;
  int64_t count;
  void* norms;
  IndexArray bins;

  std::vector<Given> from;  // of kCsr, kBlocks, kTopBlocks, kTransposed and kToCsr one; of kBlockDiagonal any number
};

enum class Work { kToDense, kGather, kNorms, kSum, kScale, kMultiply, kAdd };

struct ValuesJob {
  Work what;
  Given a;
  sparsek_dtype dtype;
  sparsek_stream stream;
  void* out;
  const void* b;
  int64_t ld;
  sparsek_order order;
  sparsek_norm norm;
  bool transposed;
  const void *row_factors, *column_factors;
  double alpha, beta;
};

// The block rows that `tokens` rows take, of blocks of that height. No matrix has kMostRows, so more is as much.
constexpr int64_t kMostRows = int64_t{1} << 31;
SPARSEK_ANYWHERE constexpr int64_t rows_of_tokens(int64_t tokens, int32_t block_m) {
  const int64_t rows = tokens / block_m + (tokens % block_m != 0 ? 1 : 0);
  return rows < kMostRows ? rows : kMostRows;
}
// Where an expert's block rows begin, behind `rows`, as far as the type of bins can say.
SPARSEK_ANYWHERE constexpr int64_t bin_of(int64_t rows, int32_t type) {
  return rows < largest_index(type) ? rows : largest_index(type);
}
// So many blocks are those rows, each of `width`.
SPARSEK_ANYWHERE constexpr int64_t blocks_of_rows(int64_t rows, int64_t width) {
  return (rows < kMostRows ? rows : kMostRows) * width;
}

// A member of a block-diagonal matrix: what its index says, as the joined one says it. What is at fault there becomes
// kNoIndex, so that the joined one has a fault too: in its place it could be right.
constexpr int64_t kNoIndex = -1;
// Blocks that are read, within the arrays.
SPARSEK_ANYWHERE inline int64_t blocks_of(const Given& member) {
  const int64_t blocks = member.row_ptr.get(member.shape.block_rows);
  return blocks < 0 ? 0 : blocks < member.shape.nnzb ? blocks : member.shape.nnzb;
}
// row_ptr[row] of a row above 0, where the member's first entry is number `begin`.
SPARSEK_ANYWHERE inline int64_t joined_row(const Given& member, int64_t row, int64_t begin) {
  const int64_t end = member.row_ptr.get(row), nnzb = member.shape.nnzb;
  const bool is_last = row == member.shape.block_rows;
  const bool good =
      end >= 0 && end <= nnzb && (!is_last || member.bounded || end == nnzb) && (row > 1 || member.row_ptr.get(0) == 0);
  return good ? begin + end : kNoIndex;
}
SPARSEK_ANYWHERE inline int64_t joined_column(const Given& member, int64_t entry, int64_t col_begin) {
  const int64_t col = member.col_idx.get(entry);
  return col >= 0 && col < member.shape.block_cols ? col_begin + col : kNoIndex;
}
SPARSEK_ANYWHERE inline int64_t joined_block(const Given& member, int64_t entry, int64_t value_begin) {
  const int64_t block = member.block(entry);
  return block >= 0 && block < member.shape.nnzb ? value_begin + block : kNoIndex;
}

// Faults are ordered by the array in which they are, then by place. The status fills the low byte. As of plan_write.
enum class FaultyArray { kRowPtr, kColIdx, kBlockIdx };
constexpr int kFaultyArrayShift = 62;
constexpr uint64_t kNoFault = ~uint64_t{0};
constexpr uint64_t make_fault(FaultyArray array, int64_t place, sparsek_status status) {
  return static_cast<uint64_t>(array) << kFaultyArrayShift | static_cast<uint64_t>(place) << 8 |
         static_cast<uint64_t>(status);
}
// The fault that the caller gets: 0 where there is none.
constexpr int64_t reported_fault(uint64_t fault) {
  return fault == kNoFault ? 0 : static_cast<int64_t>(fault & ((uint64_t{1} << kFaultyArrayShift) - 1));
}

}  // namespace sparsek::pattern
