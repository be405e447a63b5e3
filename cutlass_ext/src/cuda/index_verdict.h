// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek::cuda {

constexpr uint64_t kNoFault = ~uint64_t{0};

// What one CTA found in its part of an index: written by each, so that nothing has to be cleared before.
struct IndexVerdict {
  uint64_t fault;       // the first one, see device_index.cu; kNoFault: none
  int64_t value;        // of the element that is at fault
  int64_t other;        // of the one that it is compared with
  int64_t longest_row;  // blocks of the longest block row
};
// At most: a CTA of kVerdictThreads threads looks at all of them, each thread at one.
constexpr int kMostVerdicts = 256;

// An index in device memory as kernels read it. col_idx is not to be read where a verdict has a fault.
struct CheckedIndex {
  int32_t* row_ptr;        // (block_rows + 1)
  int32_t* col_idx;        // (nnzb)
  IndexVerdict* verdicts;  // (verdict_count)
  int32_t verdict_count;
};

#ifdef __CUDACC__
// Whether the index is good; for all threads of a CTA at once, of at least kMostVerdicts threads.
__device__ inline bool is_good(const CheckedIndex& index) {
  const int at = static_cast<int>(threadIdx.x);
  return !__syncthreads_or(at < index.verdict_count && index.verdicts[at].fault != kNoFault);
}
#endif

}  // namespace sparsek::cuda
