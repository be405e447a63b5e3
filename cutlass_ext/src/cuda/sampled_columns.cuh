// SPDX-License-Identifier: Apache-2.0
// The columns that a pair of strips (cuda/sampled_tile.h) has in an index.
#pragma once

#include <cstdint>

#include "cuda/sampled_list.h"

namespace sparsek::cuda {
namespace sampled_listing {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = ~0u;

// The block rows of a pair, from the top: those of the upper strip, then of the lower one; empty where there is none.
template <int Blocks>
struct PairRows {
  int32_t begin[2 * Blocks], end[2 * Blocks];
  int32_t first_row[2];

  __device__ PairRows(const CheckedIndex& index, const SampledGrid& grid, int64_t pair) {
    const int64_t pairs_of_row = (grid.strips_of_row + 1) / 2;
#pragma unroll
    for (int j = 0; j < 2 * Blocks; ++j) {
      int64_t row = pair * (2 * Blocks) + j;
      bool is_there = true;
      if (grid.strips_of_row > 1) {
        row = pair / pairs_of_row;
        is_there = pair % pairs_of_row * 2 + j < grid.strips_of_row;
      }
      is_there = is_there && row < grid.block_rows;
      begin[j] = is_there ? index.row_ptr[row] : 0;
      end[j] = is_there ? index.row_ptr[row + 1] : 0;
    }
    const int64_t strip =
        grid.strips_of_row > 1 ? pair / pairs_of_row * grid.strips_of_row + pair % pairs_of_row * 2 : pair * 2;
    for (int s = 0; s < 2; ++s) first_row[s] = static_cast<int32_t>((strip + s) * kStripRows);
  }
};

enum Kind { kBoth, kUpper, kLower, kKinds };

// A column of a pair.
template <int Blocks>
struct Column {
  int32_t at[2 * Blocks];  // entries; -1: absent
  Kind kind;
  bool is_first;  // in the first of the rows that have it
};

template <int Blocks>
__device__ Column<Blocks> find_column(const CheckedIndex& index, const PairRows<Blocks>& rows, int row, int32_t entry) {
  Column<Blocks> found;
  const int32_t column = index.col_idx[entry];
  bool in[2] = {};
  found.is_first = true;
#pragma unroll
  for (int j = 0; j < 2 * Blocks; ++j) {
    int32_t from = rows.begin[j], to = rows.end[j];
    if (from <= entry && entry < to) from = to = entry;  // it is of this row
    while (from < to) {
      const int32_t middle = from + (to - from) / 2;
      if (index.col_idx[middle] < column) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    const bool has = from < rows.end[j] && index.col_idx[from] == column;
    found.at[j] = has ? from : -1;
    in[j / Blocks] |= has;
    if (j < row && has) found.is_first = false;
  }
  found.kind = in[0] && in[1] ? kBoth : in[0] ? kUpper : kLower;
  return found;
}

// Calls f(column, its number among the cells of its kind, its column of the index) for the columns of a pair, by a
// warp.
template <int Blocks, class Function>
__device__ void for_each_column(const CheckedIndex& index, const PairRows<Blocks>& rows, int32_t (&counts)[kKinds],
                                int lane, const Function& f) {
#pragma unroll 1
  for (int j = 0; j < 2 * Blocks; ++j) {
    int32_t begin = 0, end = 0;
#pragma unroll
    for (int i = 0; i < 2 * Blocks; ++i) {
      // Both strips of a pair may be of one block row, whose columns are looked at once.
      if (i == j && (i == 0 || rows.begin[i] != rows.begin[i - 1] || rows.end[i] != rows.end[i - 1])) {
        begin = rows.begin[i], end = rows.end[i];
      }
    }
#pragma unroll 1
    for (int32_t first = begin; first < end; first += kWarp) {
      const int32_t entry = first + lane;
      Column<Blocks> column = {};
      bool counted = false;
      if (entry < end) {
        column = find_column(index, rows, j, entry);
        counted = column.is_first;
      }
      int32_t number = 0;
#pragma unroll
      for (int kind = 0; kind < kKinds; ++kind) {
        const unsigned with = __ballot_sync(kAllLanes, counted && column.kind == kind);
        if (column.kind == kind) number = counts[kind] + __popc(with & ((1u << lane) - 1));
        counts[kind] += __popc(with);
      }
      if (counted) f(column, number, index.col_idx[entry]);
    }
  }
}

}  // namespace sampled_listing
}  // namespace sparsek::cuda
