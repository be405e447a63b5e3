// SPDX-License-Identifier: Apache-2.0
// For 1 x 1 blocks in long rows. What such a product waits for are rows of B, which lie anywhere in it: as many lanes
// as have 16 bytes of a row each are a team, which has some rows of B on their way at once, and the teams that share a
// row of A add up their sums at its end. So a warp has as many rows of B on their way as registers allow, whatever the
// number of columns, and few rows of A have to be cut. No shared memory, so that L1 has room for B.
#pragma once

#include "cuda/few_columns_line_rows.cuh"
#include "cuda/few_columns_ring.cuh"

namespace sparsek::cuda::few_columns {

// To the lanes of the first team of each row, the sums of all of its teams; kLanes is how far these are apart.
template <int kLanes, class Number, int kColumns>
__device__ inline void add_teams(int teams, Number (&sums)[kColumns]) {
#pragma unroll 1
  for (int half = teams / 2; half > 0; half /= 2) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) sums[j] += __shfl_down_sync(kAllLanes, sums[j], half * kLanes);
  }
}

// The nonzeros that a lane of a team has at once, of those that the teams of a row take in a step.
template <class ElementA, int kLoads>
struct HeldNonzeros {
  int k[kLoads];
  ElementA a[kLoads];

  // Those from `from` on, `stride` apart, before `end`. Behind it k is 0, since there is a row 0 of B.
  __device__ void load(const LaunchArgs& args, bool in_place, int from, int stride, int end) {
    const auto* const values = static_cast<const ElementA*>(args.values);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int e = from + i * stride;
      k[i] = 0;
      if (e >= end) continue;
      k[i] = __ldg(args.entry_k + e);
      a[i] = values[in_place ? e : __ldg(args.entry_block + e)];
    }
  }
};

// b + row * pitch. Written so, since the sum of a pointer and both is made in more instructions.
__device__ inline uint64_t row_at(uint64_t b, uint32_t row, uint32_t pitch) {
  uint64_t at;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(pitch), "l"(b));
  return at;
}

// 16 bytes of a row of B, by one load: the compiler neither splits it nor takes its address for one of any memory.
template <int kCount, class Element>
__device__ inline Vector<kCount, Element> load_line(uint64_t from) {
  uint4 line;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(line.x), "=r"(line.y), "=r"(line.z), "=r"(line.w)
               : "l"(from));
  return reinterpret_cast<const Vector<kCount, Element>&>(line);
}

// kLanes: of a team. kPlain: as of LineRows, and B's rows are aligned too. All lanes of the warp are at the same place,
// so that shuffles are for all of them: teams whose chunk has ended have nonzeros of no row.
template <class Element, int kLanes, bool kPlain>
__device__ inline void teams_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel) {
  using Rows = LineRows<Element, kLanes, kPlain>;
  using ElementB = typename Rows::ElementB;
  using Line = Vector<Rows::kColumns, ElementB>;
  constexpr int kColumns = Rows::kColumns, kAtOnce = lines_of_team(kLanes), kLoads = kAtOnce / kLanes;
  const int teams = rows.lanes.shares, stride = teams * kLanes, step = teams * kAtOnce;
  const int in_row = int(threadIdx.x) & (stride - 1);  // lane of those of a row
  const RowChunk chunk = at < rows.count ? read_chunk(rows, at) : RowChunk{};
  const bool in_place = chunk.entry_end >= 0;
  const int end = in_place ? chunk.entry_end : ~chunk.entry_end;
  Rows of(args, rows, chunk, at, panel);
  const uint32_t pitch = uint32_t(args.ldb) * uint32_t(sizeof(ElementB));
  // Lanes beyond N read what the first lane does.
  auto b = reinterpret_cast<uint64_t>(static_cast<const ElementB*>(args.b) + (of.columns > 0 ? of.column() : 0));
  asm("" : "+l"(b));  // one number, to which the rows of B are added: else they are added to its parts one by one
  const bool wide = kPlain || (of.columns == kColumns && args.ldb % kColumns == 0 &&
                               reinterpret_cast<uintptr_t>(args.b) % kBytesOfLane == 0);

  int e = chunk.entry_begin;
  HeldNonzeros<TypeOfA<Element>, kLoads> next;
  next.load(args, in_place, e + in_row, stride, end);
  Sum<Element> sums[kColumns] = {};
#pragma unroll 1
  while (true) {
#pragma unroll 1
    while (__any_sync(kAllLanes, of.row_end <= e)) {
      Sum<Element> of_row[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) of_row[j] = sums[j];
      add_teams<kLanes>(teams, of_row);
      const bool ends = of.row_end <= e;
      if (ends && in_row < kLanes && of.columns > 0) of.store(of_row);
      __syncwarp();
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sums[j] = ends ? 0 : sums[j];
      if (ends) of.go_on();
    }
    if (!__any_sync(kAllLanes, e < end)) break;
    // The next step begins where this one ends, be it in the same row or in the next.
    const int stop = min(min(of.row_end, end), e + step), left = stop - e;
    e = stop;
    auto now = next;
    // No load depends on a branch, so that none waits for another: behind the end of the row, row 0 of B is read, and
    // left out.
#pragma unroll
    for (int i = 0; i < kLoads; ++i) now.k[i] = in_row + i * stride < left ? now.k[i] : 0;
    const int of_team = left - (in_row & -kLanes);
    Line lines[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const uint64_t from = row_at(b, __shfl_sync(kAllLanes, now.k[u / kLanes], u % kLanes, kLanes), pitch);
      if (wide) {
        lines[u] = load_line<kColumns, ElementB>(from);
      } else {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) {
          lines[u].of[j] = j < of.columns ? reinterpret_cast<const ElementB*>(from)[j] : ElementB(0);
        }
      }
    }
    next.load(args, in_place, e + in_row, stride, end);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const Sum<Element> of_lane = to_float(now.a[u / kLanes]);
      const Sum<Element> value = __shfl_sync(kAllLanes, of_lane, u % kLanes, kLanes);
      const bool is_in_row = u / kLanes * stride + u % kLanes < of_team;
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const Sum<Element> with = fma(value, Sum<Element>(to_float(lines[u].of[j])), sums[j]);
        sums[j] = is_in_row ? with : sums[j];
      }
    }
  }
}

}  // namespace sparsek::cuda::few_columns
