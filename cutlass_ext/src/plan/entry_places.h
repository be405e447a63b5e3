// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/row_grid.h"

namespace sparsek {

// Where the entries of each row group begin in an array whose size is known before they are counted. A group has at
// most as many entries as its block rows have blocks, and at most as many as there are block columns. So either each
// group begins where the blocks of its first block row do, or the groups have room for block_cols entries each,
// whichever takes less. The entries of different groups never overlap; between them there are gaps.
//
// Groups that cut block rows share blocks with their neighbours. Those lie in different sections of nnzb entries each:
// for block rows lower than a group, even and odd groups; for higher ones, groups within one block row, and those at
// its ends by the number of the first block row, even and odd. Two groups of a section have no block row in common.
//
// Groups of rows in another order than the natural one cut no block rows. Where they have no room for block_cols
// entries each, begin is not theirs: they take places for as many entries as their rows have blocks, one after the
// other.
class EntryPlaces {
 public:
  EntryPlaces() = default;
  // nnzb: an upper bound on the blocks of the matrix.
  constexpr EntryPlaces(const RowGrid& grid, int32_t block_cols, int64_t nnzb)
      : grid_(grid), nnzb_(nnzb), block_cols_(block_cols) {
    const int64_t tile_m = grid.tile_m();
    sections_ = tile_m % grid.block_m == 0 || grid.block_m % tile_m == 0 ? 1 : tile_m > grid.block_m ? 2 : 3;
    const int64_t by_columns = grid.groups() * block_cols;
    by_columns_ = by_columns < sections_ * nnzb;
    capacity_ = by_columns_ ? by_columns : sections_ * nnzb;
  }

  // Whether the groups have room for block_cols entries each.
  constexpr bool by_columns() const { return by_columns_; }
  // Entries in all, with the gaps.
  constexpr int64_t capacity() const { return capacity_; }
  // Of a group that is its own leader. row_ptr: of the matrix, (block_rows + 1).
  constexpr int64_t begin(int64_t group, const int32_t* row_ptr) const {
    if (by_columns_) return group * block_cols_;
    const int64_t row = grid_.block_row(group, 0);
    return section(group, row) * nnzb_ + row_ptr[row];
  }

 private:
  constexpr int64_t section(int64_t group, int64_t row) const {
    if (sections_ == 1) return 0;
    if (sections_ == 2) return group % 2;
    return grid_.block_row(group, grid_.slots - 1) == row ? 0 : 1 + row % 2;
  }

  RowGrid grid_;
  int64_t nnzb_ = 0, capacity_ = 0;
  int32_t block_cols_ = 0;
  int32_t sections_ = 1;
  bool by_columns_ = false;
};

}  // namespace sparsek
