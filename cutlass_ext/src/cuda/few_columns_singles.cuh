// SPDX-License-Identifier: Apache-2.0
// For 1 x 1 blocks by up to three columns: no shared memory, so that L1 has room for B, whose elements are what a
// product waits for. Rows have some lanes each; a long one has the whole warp.
#pragma once

#include <type_traits>

#include "cuda/few_columns_ring.cuh"
#include "cuda/few_columns_store.cuh"

namespace sparsek::cuda::few_columns {

// The sum of a lane: every `step`th nonzero from `from` on, before `to`, some at once. Where numbers are converted,
// that comes behind all loads, and no load depends on a branch: a conversion behind its load's branch waits for the
// load before. Then behind the end the last nonzero is loaded again, and left out.
template <class Element>
__device__ inline Sum<Element> sum_singles(const LaunchArgs& args, const TypeOfB<Element>* b, bool in_place, int from,
                                           int to, int step) {
  constexpr int kAtOnce = kSinglesAtOnce;
  constexpr bool kConverts = !std::is_same_v<TypeOfA<Element>, Sum<Element>>;
  const auto* const values = static_cast<const TypeOfA<Element>*>(args.values);
  Sum<Element> sum = 0;
#pragma unroll 1
  for (int i = from; i < to; i += kAtOnce * step) {
    int k[kAtOnce];
    TypeOfA<Element> a[kAtOnce];
    TypeOfB<Element> x[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const int e = kConverts ? min(i + u * step, to - 1) : i + u * step;
      k[u] = -1;
      a[u] = TypeOfA<Element>(0);
      if (kConverts || e < to) {
        k[u] = __ldg(args.entry_k + e);
        a[u] = values[in_place ? e : __ldg(args.entry_block + e)];
      }
    }
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) x[u] = kConverts || k[u] >= 0 ? b[k[u] * args.ldb] : TypeOfB<Element>(0);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const Sum<Element> with = fma(Sum<Element>(to_float(a[u])), Sum<Element>(to_float(x[u])), sum);
      if (!kConverts || i + u * step < to) sum = with;
    }
  }
  return sum;
}

// To all lanes of each group of `lanes`, a power of two, the group's sum.
template <class Number>
__device__ inline Number add_group(Number sum, int lanes) {
#pragma unroll 1
  for (int half = lanes / 2; half > 0; half /= 2) sum += __shfl_xor_sync(kAllLanes, sum, half);
  return sum;
}

// A panel is a column.
template <class Element>
__device__ inline void singles_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel) {
  constexpr int kLanes = 32;
  const int lane = threadIdx.x % kLanes, shares = rows.lanes.shares, at_once = kLanes / shares;
  const int longest = 2 * kSinglesAtOnce * shares;  // that some lanes compute
  const RowChunk chunk = read_chunk(rows, at);
  const bool in_place = chunk.entry_end >= 0;
  const int chunk_end = in_place ? chunk.entry_end : ~chunk.entry_end;
  const auto* const b = static_cast<const TypeOfB<Element>*>(args.b) + panel;
  const float alpha = alpha_of(args.epilogue);
  const bool plain = only_scales(args.epilogue, kTypeOf<TypeOfB<Element>>);
#pragma unroll 1
  for (int base = chunk.row_begin; base < chunk.row_end; base += kLanes) {
    // A row a lane.
    const int count = min(kLanes, chunk.row_end - base);
    int begin = __ldg(rows.row_ptr + base + min(lane, count)), end = __ldg(rows.row_ptr + base + min(lane + 1, count));
    const bool begun_before = begin<chunk.entry_begin, goes_on = end> chunk_end;
    begin = max(begin, chunk.entry_begin), end = min(end, chunk_end);
    unsigned long_rows = __ballot_sync(kAllLanes, end - begin > longest);
    Sum<Element> mine = 0;
#pragma unroll 1
    for (int first = 0; first < count; first += at_once) {
      const int row = first + lane / shares;
      const int from = __shfl_sync(kAllLanes, begin, row), to = __shfl_sync(kAllLanes, end, row);
      const int stop = long_rows >> row & 1 ? from : to;
      const Sum<Element> sum =
          add_group(sum_singles<Element>(args, b, in_place, from + lane % shares, stop, shares), shares);
      const Sum<Element> of_lane = __shfl_sync(kAllLanes, sum, lane % at_once * shares);
      if (lane / at_once * at_once == first) mine = of_lane;
    }
    while (long_rows != 0) {
      const int row = __ffs(long_rows) - 1;
      long_rows &= long_rows - 1;
      const int from = __shfl_sync(kAllLanes, begin, row), to = __shfl_sync(kAllLanes, end, row);
      const Sum<Element> sum = add_group(sum_singles<Element>(args, b, in_place, from + lane, to, kLanes), kLanes);
      if (lane == row) mine = sum;
    }
    if (lane >= count) continue;
    if (begun_before || goes_on) {
      static_cast<Sum<Element>*>(rows.sums)[(int64_t(at) * 2 + (begun_before ? 0 : 1)) * rows.lanes.panels + panel] =
          mine;
    } else {
      const Sum<Element> one[1] = {mine};
      write_row<TypeOfB<Element>>(args, plain, alpha, base + lane, panel, 1, one);
    }
  }
}

}  // namespace sparsek::cuda::few_columns
