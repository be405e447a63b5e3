// SPDX-License-Identifier: Apache-2.0
// For 1 x 1 blocks by so many columns that rows of B are lines of 128 bytes. What such a product waits for are lines
// that lie anywhere in B, so eight lanes, a team, have a chunk of their own, and eight lines of it on their way at
// once, whatever rows of A these belong to. No shared memory, so that L1 has room for B.
#pragma once

#include "cuda/few_columns_line_rows.cuh"
#include "cuda/few_columns_ring.cuh"

namespace sparsek::cuda::few_columns {

// kPlain: as of LineRows, and B's rows are aligned too.
template <class Element, int kAtOnce, bool kPlain>
__device__ inline void lines_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel) {
  using ElementA = TypeOfA<Element>;
  using Rows = LineRows<Element, kLanesOfLine, kPlain>;
  using ElementB = typename Rows::ElementB;
  using Line = Vector<Rows::kColumns, ElementB>;
  constexpr int kTeam = kLanesOfLine, kColumns = Rows::kColumns;
  const int lane = threadIdx.x % kTeam;
  const RowChunk chunk = at < rows.count ? read_chunk(rows, at) : RowChunk{};
  const bool in_place = chunk.entry_end >= 0;
  const int begin = chunk.entry_begin, end = in_place ? chunk.entry_end : ~chunk.entry_end;
  Rows of(args, rows, chunk, at, panel);
  const uint32_t pitch = uint32_t(args.ldb) * uint32_t(sizeof(ElementB));
  // Lanes beyond N read what the first lane does.
  const char* const b =
      static_cast<const char*>(args.b) + (of.columns > 0 ? of.column() : 0) * int64_t(sizeof(ElementB));
  const bool wide = kPlain || (of.columns == kColumns && args.ldb % kColumns == 0 &&
                               reinterpret_cast<uintptr_t>(args.b) % kBytesOfLane == 0);
  const auto* const values = static_cast<const ElementA*>(args.values);

  // A nonzero a lane, and the next one that it will have.
  int k, next_k = 0;
  Sum<Element> a, next_a = 0;
  const auto read_next = [&](int e) {
    if (e >= end) return;
    next_k = __ldg(args.entry_k + e);
    next_a = to_float(values[in_place ? e : __ldg(args.entry_block + e)]);
  };
  read_next(begin + lane);
  Sum<Element> sums[kColumns] = {};
  of.add_up_to(begin, sums);
#pragma unroll 1
  for (int e = begin; __any_sync(kAllLanes, e < end); e += kTeam) {
    k = next_k;
    a = next_a;
    read_next(e + kTeam + lane);
#pragma unroll 1
    for (int first = 0; first < kTeam; first += kAtOnce) {
      Line lines[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const auto row = uint32_t(__shfl_sync(kAllLanes, k, first + u, kTeam));
        const char* const from = b + uint64_t(row) * pitch;
        if (e + first + u >= end) continue;
        if (wide) {
          lines[u] = *reinterpret_cast<const Line*>(from);
        } else {
#pragma unroll
          for (int j = 0; j < kColumns; ++j)
            lines[u].of[j] = j < of.columns ? reinterpret_cast<const ElementB*>(from)[j] : ElementB(0);
        }
      }
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
        const Sum<Element> value = __shfl_sync(kAllLanes, a, first + u, kTeam);
        if (e + first + u >= end) continue;
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sums[j] = fma(value, Sum<Element>(to_float(lines[u].of[j])), sums[j]);
        of.add_up_to(e + first + u + 1, sums);
      }
    }
  }
}

}  // namespace sparsek::cuda::few_columns
