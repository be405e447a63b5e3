// SPDX-License-Identifier: Apache-2.0
// How the warps of a CTA walk the elements of A in some rows of a row group and a part of the columns, for kernels that
// write A dense.
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/launch_args.h"
#include "cuda/row_bounds.h"

namespace sparsek::cuda {

// The rows and columns of A that a CTA has. Columns: of the bounds' parts, no narrower than a block is wide.
struct PartOfRows {
  int64_t group, part;
  int64_t first_col, end_col;
  int64_t first_block_row;
  int rows, block_rows;  // of the group
  int before;            // rows of its first block row that lie before the group
  uint32_t block_m;

  __device__ PartOfRows(const LaunchArgs& args, uint32_t parts, int group_rows, int columns)
      : group(blockIdx.x / parts), part(blockIdx.x % parts), block_m(args.block_m) {
    const int64_t first_row = group * group_rows;
    rows = int(min(int64_t(group_rows), args.rows - first_row));
    first_block_row = first_row / args.block_m;
    before = int(first_row - first_block_row * args.block_m);
    block_rows = block_row(rows - 1) + 1;
    first_col = part * columns;
    end_col = min(first_col + columns, args.cols);
  }
  // Of row i of the group: which of its block rows.
  __device__ int block_row(int i) const { return int(uint32_t(before + i) / block_m); }

  // The entries of block row i that have columns in the part.
  __device__ int2 entries(const LaunchArgs& args, const int32_t* all_bounds, int64_t parts, int i) const {
    const int32_t* const bounds = all_bounds + (first_block_row + i) * (parts + 1);
    int begin = __ldg(bounds + part);
    const int end = __ldg(bounds + part + 1);
    // The block before may reach into the part: it begins in the part before, as no block is wider than a part.
    if (part > 0 && begin > __ldg(bounds) && __ldg(args.entry_k + begin - 1) + args.block_k > first_col) --begin;
    return {begin, end};
  }
};

// Division of numbers below 2^25 by a block's width, at most 2^7: the product is above the quotient by less than
// 2^-32 x 2^25 x 2^7 / width.
struct DivideByWidth {
  uint32_t width, reciprocal;
  __device__ explicit DivideByWidth(uint32_t by) : width(by), reciprocal(0xffffffffu / by + 1) {}
  __device__ uint32_t operator()(uint32_t x) const { return width == 1 ? x : __umulhi(x, reciprocal); }
};

// Calls put(row of the group, column of the part, value) for each element of the part's blocks. entries: begin and end
// of each block row of the group. A warp has a row at a time, Rows of which are under way. By Warps warps.
template <int Warps, int Rows, class Number, class Put>
__device__ void each_element(const LaunchArgs& args, const PartOfRows& part, bool in_place, const int2* entries,
                             const Put& put) {
  const int lane = threadIdx.x % 32;
  const DivideByWidth by_width(args.block_k);
  const auto* const values = static_cast<const Number*>(args.values);
  const int area = args.block_m * args.block_k;
  const auto columns = uint32_t(part.end_col - part.first_col);
#pragma unroll 1
  for (int first = threadIdx.x / 32; first < part.rows; first += Warps * Rows) {
    int begin[Rows], count[Rows], in_block[Rows], most = 0;
#pragma unroll
    for (int j = 0; j < Rows; ++j) {
      const int row = first + j * Warps, of_block = part.block_row(min(row, part.rows - 1));
      const int2 own = entries[of_block];
      begin[j] = own.x;
      count[j] = row < part.rows ? (own.y - own.x) * args.block_k : 0;
      in_block[j] = (part.before + row - of_block * args.block_m) * args.block_k;
      most = max(most, count[j]);
    }
#pragma unroll 1
    for (int i = lane; i < most; i += 32) {
      const auto entry = int(by_width(i)), column = i - entry * args.block_k;
      int k[Rows];
      Number value[Rows];
#pragma unroll
      for (int j = 0; j < Rows; ++j) {
        if (i >= count[j]) continue;
        const int e = begin[j] + entry;
        const int64_t block = in_place ? e : __ldg(args.entry_block + e);
        k[j] = __ldg(args.entry_k + e);
        value[j] = __ldg(values + block * area + in_block[j] + column);
      }
#pragma unroll
      for (int j = 0; j < Rows; ++j) {
        if (i >= count[j]) continue;
        const auto at = uint32_t(int64_t(k[j]) + column - part.first_col);  // large where it lies before the part
        if (at < columns) put(first + j * Warps, int(at), value[j]);
      }
    }
  }
}

}  // namespace sparsek::cuda
