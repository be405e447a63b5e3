// SPDX-License-Identifier: Apache-2.0
// Sorts the block rows of an index that was copied, by their columns.
#pragma once

#include <cstdint>

#include "cuda/dependent_launch.cuh"
#include "cuda/index_verdict.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace indexing {

constexpr int kSortThreads = 256;
constexpr int32_t kSortedAtOnce = 2048;  // blocks of a row that are sorted in shared memory

// A column, and the block of values that belongs there.
struct Named {
  int32_t col, block;
};

// Called by all threads of a CTA: Batcher's merge exchange sort (Knuth, vol. 3, 5.2.2, algorithm M), which takes any
// number of elements and needs no other memory. at(i): the i-th element, by a proxy with get() and set().
template <class At>
__device__ void sort_row(int32_t count, At at) {
  int32_t top = 1;
  while (2 * top < count) top *= 2;
  for (int32_t p = top; p > 0; p /= 2) {
    int32_t r = 0, d = p;
    for (int32_t q = top;; q /= 2) {
      for (int32_t i = threadIdx.x; i < count - d; i += kSortThreads) {
        if ((i & p) != r) continue;
        const Named low = at(i).get(), high = at(i + d).get();
        if (low.col <= high.col) continue;
        at(i).set(high);
        at(i + d).set(low);
      }
      __syncthreads();
      if (q == p) break;
      d = q - p;
      r = p;
    }
  }
}

struct InShared {
  Named* element;
  __device__ Named get() const { return *element; }
  __device__ void set(const Named& value) const { *element = value; }
};
struct InIndex {
  int32_t *col, *block;
  __device__ Named get() const { return {*col, *block}; }
  __device__ void set(const Named& value) const { *col = value.col, *block = value.block; }
};

// As many CTAs as there are verdicts, each for every so many block rows. A column that a row has twice becomes the
// verdict's fault where that is an earlier one than the verdict has. given: the caller's columns, for its place.
template <class Index>
__global__ void __launch_bounds__(kSortThreads)
    sort_columns(const Index* given, int32_t block_rows, int64_t nnzb, CheckedIndex index) {
  __shared__ Named shared[kSortedAtOnce];
  __shared__ unsigned long long first;
  start_dependent();
  if (threadIdx.x == 0) first = index.verdicts[blockIdx.x].fault;
  Finding finding;
  for (int32_t row = blockIdx.x; row < block_rows; row += gridDim.x) {
    const int64_t begin = index.row_ptr[row], end = index.row_ptr[row + 1];
    if (begin < 0 || end < begin || end > nnzb) continue;  // a fault, which was found
    const auto count = static_cast<int32_t>(end - begin);
    int32_t* const cols = index.col_idx + begin;
    int32_t* const blocks = index.block_idx + begin;
    __syncthreads();
    if (count <= kSortedAtOnce) {
      for (int32_t i = threadIdx.x; i < count; i += kSortThreads) shared[i] = {cols[i], blocks[i]};
      __syncthreads();
      sort_row(count, [&](int32_t i) { return InShared{shared + i}; });
      for (int32_t i = threadIdx.x; i < count; i += kSortThreads) {
        cols[i] = shared[i].col;
        blocks[i] = shared[i].block;
      }
      __syncthreads();
    } else {
      sort_row(count, [&](int32_t i) { return InIndex{cols + i, blocks + i}; });
    }
    for (int32_t i = threadIdx.x + 1; i < count; i += kSortThreads) {
      if (cols[i] != cols[i - 1]) continue;
      int64_t places[2] = {begin + i, begin + i - 1};
      for (int64_t found = 0, at = begin; at < end && found < 2; ++at) {
        if (given[at] == cols[i]) places[1 - found++] = at;
      }
      finding.add(kColIdx, places[0], SPARSEK_COL_IDX_REPEATED, cols[i], places[1]);
    }
  }
  __syncthreads();
  if (finding.fault != kNoFault) atomicMin(&first, static_cast<unsigned long long>(finding.fault));
  __syncthreads();
  if (finding.fault == kNoFault || finding.fault != first) return;
  IndexVerdict& verdict = index.verdicts[blockIdx.x];
  verdict.fault = finding.fault;
  verdict.value = finding.value;
  verdict.other = finding.other;
}

}  // namespace indexing
}  // namespace sparsek::cuda
