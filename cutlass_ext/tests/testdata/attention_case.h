// SPDX-License-Identifier: Apache-2.0
// Random layouts and rules of attention, and what of them a list of steps has to name.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "plan/attention.h"
#include "plan/attention_step.h"

namespace sparsek {

inline std::mt19937 generator(1);
inline int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(generator); }

[[noreturn]] inline void wrong(const char* what) {
  std::printf("%s\n", what);
  std::exit(1);
}

struct Case {
  AttentionShape shape;
  AttentionLayout layout;
};

// Blocks are multiples of so many rows.
inline Case random_case(int rows = kAttentionUnit) {
  Case c;
  AttentionShape& s = c.shape;
  s.batch = draw(1, 3);
  s.heads_k = draw(1, 3);
  s.heads_q = s.heads_k * draw(1, 3);
  s.seq_q = draw(0, 700);
  s.seq_k = draw(0, 700);
  s.head_size = s.head_size_v = 64;
  s.block_q = rows * draw(1, 3);
  s.block_k = rows * draw(1, 3);
  s.layout_batch = draw(0, 1) == 0 ? 1 : s.batch;
  s.layout_heads = draw(0, 1) == 0 ? 1 : s.heads_q;
  s.left = draw(0, 1) == 0;
  s.right = draw(0, 1) == 0;
  s.align_ends = draw(0, 1) == 0;
  s.window_left = draw(-200, 400);
  s.window_right = draw(-200, 400);
  const int density = draw(0, 4);
  c.layout.offsets.push_back(0);
  for (int64_t r = 0; r < s.layout_rows(); ++r) {
    for (int64_t col = 0; col < s.key_blocks(); ++col) {
      if (draw(1, 4) <= density) c.layout.columns.push_back(static_cast<int32_t>(col));
    }
    c.layout.offsets.push_back(static_cast<int32_t>(c.layout.columns.size()));
  }
  return c;
}

inline bool lists(const Case& c, int64_t batch, int64_t head, int64_t i, int64_t j) {
  const int64_t row = c.shape.layout_row(batch, head) + i / c.shape.block_q;
  for (int32_t e = c.layout.offsets[row]; e < c.layout.offsets[row + 1]; ++e) {
    if (c.layout.columns[e] == j / c.shape.block_k) return true;
  }
  return false;
}

// Units that the 64 queries from i on need, and whether all queries see all keys of them. Or other `rows` of both.
inline std::map<uint32_t, bool> needed(const Case& c, int64_t batch, int64_t head, int64_t i,
                                       int64_t rows = kAttentionUnit) {
  const AttentionShape& s = c.shape;
  const AttentionBand band = s.band(s.seq_q, s.seq_k);
  std::map<uint32_t, bool> units;
  if (i >= s.seq_q) return units;
  for (int64_t j = 0; j < s.seq_k; j += rows) {
    if (!lists(c, batch, head, i, j)) continue;
    bool any = false, all = true;
    for (int64_t a = i; a < i + rows; ++a) {
      for (int64_t b = j; b < j + rows; ++b) {
        const bool sees = b < s.seq_k && b - a >= band.low && b - a <= band.high;
        any = any || (sees && a < s.seq_q);
        all = all && (sees || (a >= s.seq_q && b < s.seq_k));
      }
    }
    if (any) units[static_cast<uint32_t>(j / rows)] = all;
  }
  return units;
}

}  // namespace sparsek
