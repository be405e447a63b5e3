// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek {

// Row groups. In the natural order of the rows, slot s of group g begins at row (g * slots + s) * slot_rows; in another
// order each slot is a block row. All functions are constexpr, so that each thread of a kernel can compute its own
// group.
struct RowGrid {
  int64_t rows = 0;  // M
  int32_t block_m = 1;
  int32_t slots = 1;      // of a group
  int32_t slot_rows = 1;  // a divisor of block_m: no slot lies in two block rows
  // (groups, slots): the block row of each slot, or a number beyond them. null: the natural order. Otherwise slot_rows
  // is block_m, and there are several slots. Where this is read, it has to be in the reader's memory.
  const int32_t* order = nullptr;

  constexpr int64_t tile_m() const { return static_cast<int64_t>(slots) * slot_rows; }
  constexpr int64_t groups() const { return (rows + tile_m() - 1) / tile_m(); }
  constexpr int64_t slot_row(int64_t group, int32_t slot) const {
    const int64_t place = group * slots + slot;
    return (order == nullptr ? place : order[place]) * slot_rows;
  }

  // The block row in which a slot lies, or -1 below the last row.
  constexpr int64_t block_row(int64_t group, int32_t slot) const {
    const int64_t row = slot_row(group, slot);
    return row < rows ? row / block_m : -1;
  }

  // The first of the groups that share this group's entries, because all their slots lie in the same block row.
  constexpr int64_t leader(int64_t group) const {
    if (order != nullptr) return group;
    const int64_t only = block_row(group, 0);
    if (block_row(group, slots - 1) != only) return group;
    return (only * block_m + tile_m() - 1) / tile_m();
  }
};

}  // namespace sparsek
