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
