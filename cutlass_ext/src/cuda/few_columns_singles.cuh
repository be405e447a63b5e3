// SPDX-License-Identifier: Apache-2.0
// For 1 x 1 blocks by up to three columns: lanes multiply nonzeros one after the other, whatever rows they are of, and
// leave the products in shared memory, where each lane adds up those of a row. So short rows leave no lane idle,
// however uneven rows are. Products take little of shared memory, so that L1 has room for B, whose elements are what a
// product waits for.
#pragma once

#include <climits>

#include "cuda/few_columns_ring.cuh"
#include "cuda/few_columns_store.cuh"

namespace sparsek::cuda::few_columns {

// The next nonzeros of a lane, of a step of a warp. Behind the end the last one is loaded again, and left out when sums
// are made: so no load depends on a branch, and all of them are on their way at once.
template <class Element>
struct NextSingles {
  int k[kSinglesAtOnce];
  TypeOfA<Element> a[kSinglesAtOnce];

  __device__ void load(const LaunchArgs& args, bool in_place, int begin, int end) {
    if (begin >= end) return;
    const auto* const values = static_cast<const TypeOfA<Element>*>(args.values);
#pragma unroll
    for (int u = 0; u < kSinglesAtOnce; ++u) {
      const int e = min(begin + u * 32 + static_cast<int>(threadIdx.x % 32), end - 1);
      k[u] = __ldg(args.entry_k + e);
      a[u] = values[in_place ? e : __ldg(args.entry_block + e)];
    }
  }

  __device__ void multiply(const LaunchArgs& args, const TypeOfB<Element>* b, Sum<Element>* products) const {
    TypeOfB<Element> x[kSinglesAtOnce];
#pragma unroll
    for (int u = 0; u < kSinglesAtOnce; ++u) x[u] = b[k[u] * args.ldb];
#pragma unroll
    for (int u = 0; u < kSinglesAtOnce; ++u) {
      products[u * 32 + threadIdx.x % 32] = Sum<Element>(to_float(a[u])) * Sum<Element>(to_float(x[u]));
    }
  }
};

// To all lanes, the sum of those of the warp.
template <class Number>
__device__ inline Number add_warp(Number sum) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(kAllLanes, sum, half);
  return sum;
}

// Of a lane, the sum of the products of its row, [from, to): by the lane itself, or all of a row of many by the warp.
template <class Number>
__device__ inline Number add_products(const Number* products, int from, int to) {
  constexpr int kMost = 32, kAtOnce = 4;  // of a lane
  const int lane = threadIdx.x % 32;
  unsigned of_warp = __ballot_sync(kAllLanes, to - from > kMost);
  Number sum = 0;
  if (to - from <= kMost) {
#pragma unroll 1
    for (int i = from; i < to; i += kAtOnce) {
      Number some[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) some[u] = products[min(i + u, to - 1)];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        if (i + u < to) sum += some[u];
      }
    }
  }
  for (; of_warp != 0; of_warp &= of_warp - 1) {
    const int row = __ffs(of_warp) - 1;
    const int begin = __shfl_sync(kAllLanes, from, row), end = __shfl_sync(kAllLanes, to, row);
    Number part = 0;
#pragma unroll
    for (int u = 0; u < kSinglesAtOnce; ++u) {
      const int i = begin + u * 32 + lane;
      if (i < end) part += products[i];
    }
    part = add_warp(part);
    if (lane == row) sum = part;
  }
  return sum;
}

// A panel is a column. products: (kStepOfSingles) of this warp, in shared memory.
template <class Element>
__device__ inline void singles_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel,
                                     Sum<Element>* products) {
  constexpr int kLanes = 32;
  const int lane = threadIdx.x % kLanes;
  const RowChunk chunk = read_chunk(rows, at);
  const bool in_place = chunk.entry_end >= 0;
  const int chunk_end = in_place ? chunk.entry_end : ~chunk.entry_end;
  const auto* const b = static_cast<const TypeOfB<Element>*>(args.b) + panel;
  const float alpha = alpha_of(args.epilogue);
  const bool plain = only_scales(args.epilogue, kTypeOf<TypeOfB<Element>>);
  const auto end_of_row = [&](int row) { return row < chunk.row_end ? __ldg(rows.row_ptr + row + 1) : INT_MAX; };

  NextSingles<Element> next;
  next.load(args, in_place, chunk.entry_begin, chunk_end);
  bool begun_before = __ldg(rows.row_ptr + chunk.row_begin) < chunk.entry_begin;  // the first row that is left
  int row = chunk.row_begin;
  Sum<Element> carry = 0;  // of that row, from the steps before
#pragma unroll 1
  for (int begin = chunk.entry_begin; row < chunk.row_end; begin += kStepOfSingles) {
    const int end = min(begin + kStepOfSingles, chunk_end);
    int row_end = end_of_row(row + lane);
    if (begin < end) next.multiply(args, b, products);
    next.load(args, in_place, begin + kStepOfSingles, chunk_end);
    __syncwarp();
    // A row a lane. Those that end in this step come before the one that goes on in the next step.
    int from = begin;
    bool more = true;
#pragma unroll 1
    while (more) {
      const int inside = min(row_end, chunk_end);
      const bool ends = row + lane < chunk.row_end && inside <= end;
      const int count = __popc(__ballot_sync(kAllLanes, ends));
      const int to = min(inside, end), before = __shfl_up_sync(kAllLanes, to, 1);
      Sum<Element> sum = add_products(products, (lane == 0 ? from : before) - begin, to - begin);
      if (lane == 0) sum += carry;
      if (ends) {
        if ((lane == 0 && begun_before) || row_end > chunk_end) {
          const int64_t part = int64_t(at) * 2 + (lane == 0 && begun_before ? 0 : 1);
          static_cast<Sum<Element>*>(rows.sums)[part * rows.lanes.panels + panel] = sum;
        } else {
          const Sum<Element> one[1] = {sum};
          write_row<TypeOfB<Element>>(args, plain, alpha, row + lane, panel, 1, one);
        }
      }
      if (count > 0) begun_before = false;
      carry = count < kLanes ? __shfl_sync(kAllLanes, sum, count) : Sum<Element>(0);
      row += count;
      more = count == kLanes && row < chunk.row_end;
      if (more) {
        from = __shfl_sync(kAllLanes, to, kLanes - 1);
        row_end = end_of_row(row + lane);
      }
    }
    __syncwarp();  // before the products of the next step
  }
}

}  // namespace sparsek::cuda::few_columns
