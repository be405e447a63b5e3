// SPDX-License-Identifier: Apache-2.0
// What kernel family "planes_packed" does with sums that are not finite: a warp computes groups of 8 columns of its 16
// rows of C again, from the blocks that exist alone, by FMAs.
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/few_columns_store.cuh"
#include "cuda/row_store.cuh"

namespace sparsek::cuda {
namespace planes_packed_kernel {

constexpr int kEight = 8;          // columns of a group
constexpr int kEntriesAtOnce = 4;  // of a lane, whose rows of B are under way
constexpr int kMostBetween = 32;   // steps from a look whether all sums are NaN to the next one

// Whether each block of values is in the place of its entry.
__device__ inline bool is_in_place(const RowChunks& rows) { return __ldg(&rows.chunks->entry_end) >= 0; }

// Eight neighbours in a row of B.
struct EightOfB {
  float of[kEight];

  // Of which `columns` exist. aligned: to 16 bytes.
  __device__ void read(const float* from, int columns, bool aligned) {
    if (aligned && columns == kEight) {
#pragma unroll
      for (int i = 0; i < kEight; i += 4) {
        const float4 read = __ldg(reinterpret_cast<const float4*>(from + i));
        of[i] = read.x, of[i + 1] = read.y, of[i + 2] = read.z, of[i + 3] = read.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kEight; ++i) of[i] = i < columns ? __ldg(from + i) : 0.f;
    }
  }
  __device__ float operator[](int i) const { return of[i]; }
};

// A lane's part of A and B: a row of A from entry `next` on, by a group of columns. A step is a column of
// kEntriesAtOnce blocks. Where NaN or Inf are everywhere, the first steps make all sums NaN, and no later one changes
// them: so the first looks for that follow each other soon.
struct AgainRow {
  const LaunchArgs& args;
  bool in_place;
  int next, end;     // entries
  int64_t in_block;  // elements of a block before the row
  const float* b;    // the group's first column
  int columns;       // of C in the group, at most kEight
  bool aligned_b;    // to 16 bytes
  int between = 1;   // steps from the look before to the next one
  int left = 1;      // of them

  __device__ bool all_nan(const float (&sums)[kEight]) const {
    bool all = true;
#pragma unroll
    for (int c = 0; c < kEight; ++c) all = all && (isnan(sums[c]) || c >= columns);
    return all;
  }

  // Adds the products of kEntriesAtOnce entries. Returns whether those of the others change nothing.
  __device__ bool add(float (&sums)[kEight]) {
    int k[kEntriesAtOnce];
    const float* a[kEntriesAtOnce];
#pragma unroll
    for (int i = 0; i < kEntriesAtOnce; ++i) {
      const int e = min(next + i, end - 1);
      k[i] = __ldg(args.entry_k + e);
      const int64_t block = in_place ? e : __ldg(args.entry_block + e);
      a[i] = static_cast<const float*>(args.values) + block * args.block_m * args.block_k + in_block;
    }
#pragma unroll 1
    for (int j = 0; j < args.block_k; ++j) {
      EightOfB of_b[kEntriesAtOnce];
      float of_a[kEntriesAtOnce];
#pragma unroll
      for (int i = 0; i < kEntriesAtOnce; ++i) {
        const int row = min(k[i] + j, int(args.cols) - 1);
        of_b[i].read(b + row * args.ldb, columns, aligned_b);
        of_a[i] = a[i][j];
      }
#pragma unroll
      for (int i = 0; i < kEntriesAtOnce; ++i) {
        if (next + i >= end || k[i] + j >= args.cols) continue;
#pragma unroll
        for (int c = 0; c < kEight; ++c) sums[c] = fmaf(of_a[i], of_b[i][c], sums[c]);
      }
      if (--left == 0) {
        if (all_nan(sums)) return true;
        left = between = min(2 * between, kMostBetween);
      }
    }
    next += kEntriesAtOnce;
    return false;
  }
};

// first_row: of the warp's 16 rows of C. groups: bit g: the 8 columns from first_col + 8 g on. A row has as many lanes
// as there are groups, or the next power of two, and the warp as many rows at once as these leave lanes for.
__device__ inline void compute_again(const LaunchArgs& args, const RowChunks& rows, uint32_t first_row,
                                     uint32_t first_col, int lane, uint32_t groups) {
  constexpr int kRows = 16;
  const int marked = __popc(groups), lanes = marked <= 1 ? 1 : 1 << (32 - __clz(marked - 1));
  const int at_once = min(kRows, 32 / lanes), own = lane % lanes;
  const bool has_group = own < marked && lane / lanes < at_once;
  const uint32_t column = first_col + kEight * (has_group ? __fns(groups, 0, own + 1) : 0);
  const int columns = has_group ? int(min(int64_t(kEight), args.n - column)) : 0;
  const bool scales = only_scales<float>(args.epilogue);
  const float alpha = alpha_of(args.epilogue);
  const bool aligned_b = (reinterpret_cast<uintptr_t>(args.b) | args.ldb * int64_t{sizeof(float)}) % 16 == 0;
#pragma unroll 1
  for (int r = lane / lanes; r - lane / lanes < kRows; r += at_once) {
    const uint32_t row = first_row + r;
    const bool inside = columns > 0 && row < args.rows;
    const uint32_t block_row = inside ? row / uint32_t(args.block_m) : 0;
    AgainRow of = {args,
                   is_in_place(rows),
                   __ldg(rows.row_ptr + block_row),
                   inside ? __ldg(rows.row_ptr + block_row + 1) : 0,
                   int64_t(row - block_row * uint32_t(args.block_m)) * args.block_k,
                   static_cast<const float*>(args.b) + column,
                   columns,
                   aligned_b};
    float sums[kEight] = {};
#pragma unroll 1
    while (of.next < of.end && !of.add(sums)) {
    }
    if (inside) few_columns::write_row<float>(args, scales, alpha, row, column, columns, sums);
  }
  __syncwarp();
}

}  // namespace planes_packed_kernel
}  // namespace sparsek::cuda
