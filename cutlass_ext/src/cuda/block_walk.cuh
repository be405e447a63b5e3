// SPDX-License-Identifier: Apache-2.0
// How kernels go through blocks: some lanes of a warp have a block, and read it in vectors.
#pragma once

#include "cuda/elements.cuh"
#include "cuda/pattern_launch.h"
#include "pattern/job.h"
#include "pattern/sum_order.h"

namespace sparsek::cuda {

constexpr unsigned kWholeWarp = ~0u;

// Entries of a matrix.
__device__ inline int64_t entries_of(const pattern::Given& a) {
  return a.bounded ? a.row_ptr.get(a.shape.block_rows) : a.shape.nnzb;
}

// The block row of an entry.
__device__ inline int64_t block_row_of(const pattern::Given& a, int64_t entry) {
  int64_t low = 0, high = a.shape.block_rows - 1;  // the first one that ends behind the entry
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a.row_ptr.get(middle + 1) > entry) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// A quotient of numbers that are not negative: most fit in 32 bits, where it takes a third of the time.
__device__ inline int64_t divide(int64_t a, int32_t b) {
  return a >> 32 == 0 ? static_cast<int64_t>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b)) : a / b;
}

// Where the lanes of a group are: `lanes` neighbouring lanes, a power of two. first: the group of the warp's first
// lane.
struct Group {
  int lane;
  int64_t first, group, groups;

  __device__ explicit Group(int lanes) {
    const int in_warp = static_cast<int>(threadIdx.x) % pattern::kMostLanes, of_warp = pattern::kMostLanes / lanes;
    const int64_t warp = (blockIdx.x * int64_t{blockDim.x} + threadIdx.x) / pattern::kMostLanes;
    lane = in_warp % lanes;
    first = warp * of_warp;
    group = first + in_warp / lanes;
    groups = int64_t{gridDim.x} * (blockDim.x / pattern::kMostLanes) * of_warp;
  }
};

// The sum (or maximum) of the vectors of a group's lanes, in its first lane. For a whole warp.
template <class S, int kCount, class Add>
__device__ S fold_lanes(S (&sums)[kCount], int lanes, Add add) {
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) sums[i] = add(sums[i], sums[i + half]);
  }
  S sum = sums[0];
  for (int half = lanes / 2; half > 0; half /= 2) sum = add(sum, __shfl_down_sync(kWholeWarp, sum, half));
  return sum;
}

}  // namespace sparsek::cuda
