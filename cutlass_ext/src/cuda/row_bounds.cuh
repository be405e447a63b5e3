// SPDX-License-Identifier: Apache-2.0
// How warps find the bounds of cuda/row_bounds.h.
#pragma once

#include "cuda/row_bounds.h"

namespace sparsek::cuda {
namespace bounds_rows {

constexpr int kTogether = 4;  // loads of a lane that are under way
constexpr int kAtOnce = 32 * kTogether;

// The bounds of a block row by one of `turns` warps, which have kAtOnce entries each in turn. An entry whose part is
// not that of the entry before it is the bound of all parts between.
__device__ inline void find_bounds(const BoundedRows& rows, int32_t* all_bounds, int64_t row, int turn, int turns,
                                   int lane) {
  const int begin = __ldg(rows.row_ptr + row), end = __ldg(rows.row_ptr + row + 1);
  int32_t* const bounds = all_bounds + row * (rows.parts + 1);
  int last = -1;  // the part of the last entry
#pragma unroll 1
  for (int first = begin + turn * kAtOnce; first < end; first += turns * kAtOnce) {
    int k[kTogether];
    const int k_before = __ldg(rows.entry_k + max(first - 1, begin));
#pragma unroll
    for (int i = 0; i < kTogether; ++i) k[i] = __ldg(rows.entry_k + min(first + i * 32 + lane, end - 1));
    last = first > begin ? int(uint32_t(k_before) / rows.columns) : -1;
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int e = first + i * 32 + lane;
      const int part = e < end ? int(uint32_t(k[i]) / rows.columns) : -1;
      int before = __shfl_up_sync(0xffffffffu, part, 1);
      if (lane == 0) before = last;
      for (int p = before + 1; p <= part; ++p) bounds[p] = e;
      last = max(last, __reduce_max_sync(0xffffffffu, part));
    }
  }
  const int last_turn = end > begin ? (end - 1 - begin) / kAtOnce % turns : 0;  // who has the last entry
  if (turn != last_turn) return;
  for (int p = last + 1 + lane; p <= rows.parts; p += 32) bounds[p] = end;
}

}  // namespace bounds_rows
}  // namespace sparsek::cuda
