// SPDX-License-Identifier: Apache-2.0
// An index in device memory, and what its check found.
#pragma once

#include <cstdint>

#include "sparsek.h"

namespace sparsek::cuda {

constexpr uint64_t kNoFault = ~uint64_t{0};

// Faults are ordered by the array in which they are, then by place. The status fills the low byte.
enum FaultyArray { kRowPtr, kColIdx, kBlockIdx };
constexpr int kArrayShift = 62;
constexpr uint64_t make_fault(FaultyArray array, int64_t place, sparsek_status status) {
  return static_cast<uint64_t>(array) << kArrayShift | static_cast<uint64_t>(place) << 8 |
         static_cast<uint64_t>(status);
}
// Place and status.
constexpr uint64_t without_array(uint64_t fault) { return fault & ((uint64_t{1} << kArrayShift) - 1); }

// What one CTA found in its part of an index: written by each, so that nothing has to be cleared before.
struct IndexVerdict {
  uint64_t fault;       // the first one; kNoFault: none
  int64_t value;        // of the element that is at fault
  int64_t other;        // of the one that it is compared with; of a column that is repeated, the other place
  int64_t longest_row;  // blocks of the longest block row
};
constexpr int kMostVerdicts = 256;

// An index in device memory as kernels read it. Where a verdict has a fault, only the verdicts are to be read.
struct CheckedIndex {
  int32_t* row_ptr;        // (block_rows + 1)
  int32_t* col_idx;        // (nnzb)
  int32_t* block_idx;      // (nnzb): the block of values that belongs there; null: 0, 1, ...
  IndexVerdict* verdicts;  // (verdict_count)
  uint32_t* arrived;       // (1): 0; CTAs count there, and leave it so
  int32_t verdict_count;
};

#ifdef __CUDACC__
// The first fault that a thread has found.
struct Finding {
  uint64_t fault = kNoFault;
  int64_t value = 0, other = 0;

  __device__ void add(FaultyArray array, int64_t place, sparsek_status status, int64_t at_fault, int64_t compared) {
    const uint64_t found = make_fault(array, place, status);
    if (found >= fault) return;
    fault = found;
    value = at_fault;
    other = compared;
  }
};

// Whether the index is good; for all threads of a CTA at once.
__device__ inline bool is_good(const CheckedIndex& index) {
  bool faulty = false;
  for (int at = static_cast<int>(threadIdx.x); at < index.verdict_count; at += static_cast<int>(blockDim.x)) {
    faulty |= index.verdicts[at].fault != kNoFault;
  }
  return !__syncthreads_or(faulty);
}
#endif

}  // namespace sparsek::cuda
