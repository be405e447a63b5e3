// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <set>

#include "plan/bsr_index.h"

inline std::mt19937 random_bits(1);
inline int32_t draw(int32_t low, int32_t high) {
  return std::uniform_int_distribution<int32_t>(low, high)(random_bits);
}

// Any pattern: rows without a block, full ones, and columns far apart.
inline sparsek::BsrIndex random_index() {
  constexpr int32_t kHeights[] = {1, 3, 16, 32, 48, 64, 96, 112, 128, 144, 256, 512};
  sparsek::BsrIndex index;
  index.block_m = kHeights[draw(0, std::size(kHeights) - 1)];
  index.block_k = 16;
  index.rows = draw(0, 1200);
  index.block_rows = static_cast<int32_t>((index.rows + index.block_m - 1) / index.block_m);
  const bool wide = draw(0, 3) == 0;  // columns far apart
  index.block_cols = wide ? 100000 : draw(0, 40);
  index.cols = static_cast<int64_t>(index.block_cols) * index.block_k;
  index.row_ptr.push_back(0);
  for (int32_t row = 0; row < index.block_rows; ++row) {
    if (wide) {
      std::set<int32_t> cols;
      for (int32_t left = draw(0, 9); left > 0; --left) cols.insert(draw(0, draw(0, 1) ? index.block_cols - 1 : 9));
      index.col_idx.insert(index.col_idx.end(), cols.begin(), cols.end());
    }
    const int32_t percent = draw(0, 3) * 30;
    for (int32_t col = 0; col < index.block_cols && !wide; ++col) {
      if (draw(0, 99) < percent) index.col_idx.push_back(col);
    }
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  index.nnzb = static_cast<int64_t>(index.col_idx.size());
  return index;
}
