// SPDX-License-Identifier: Apache-2.0
#include "plan/attention.h"

#include <algorithm>

namespace sparsek {
namespace {

constexpr int64_t kUnlimited = int64_t{1} << 62;

// Pairs within a block of which some queries see some keys.
int64_t visible_pairs(const AttentionBand& band, int64_t i, int64_t i_end, int64_t j, int64_t j_end) {
  int64_t pairs = 0;
  for (; i < i_end; ++i) {
    const int64_t first = std::max(j, i + band.low), last = std::min(j_end - 1, i + band.high);
    pairs += std::max<int64_t>(0, last - first + 1);
  }
  return pairs;
}

// Key block `column` and query block `row`, cut off at the ends of the sequences.
struct Block {
  int64_t i, i_end, j, j_end;
};

Block block_at(const AttentionShape& shape, int64_t row, int64_t column) {
  return {row * shape.block_q, std::min((row + 1) * shape.block_q, shape.seq_q), column * shape.block_k,
          std::min((column + 1) * shape.block_k, shape.seq_k)};
}

}  // namespace

AttentionBand AttentionShape::band(int64_t length_q, int64_t length_k) const {
  const int64_t shift = align_ends ? length_k - length_q : 0;
  return {left ? shift - window_left : -kUnlimited, right ? shift + window_right : kUnlimited};
}

Cover cover(const AttentionBand& band, int64_t i, int64_t i_end, int64_t j, int64_t j_end) {
  const int64_t least = j - (i_end - 1), most = j_end - 1 - i;
  if (band.low > band.high || most < band.low || least > band.high) return Cover::kNone;
  return least >= band.low && most <= band.high ? Cover::kFull : Cover::kPartial;
}

AttentionLayout whole_layout(const AttentionShape& shape) {
  const int64_t rows = shape.layout_rows(), cols = shape.key_blocks();
  AttentionLayout all;
  all.columns.reserve(static_cast<size_t>(rows * cols));
  all.offsets.push_back(0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) all.columns.push_back(static_cast<int32_t>(c));
    all.offsets.push_back(static_cast<int32_t>(all.columns.size()));
  }
  return all;
}

AttentionLayout transposed(const AttentionShape& shape, const AttentionLayout& layout) {
  const int64_t heads = shape.layout_batch * shape.layout_heads, rows = shape.query_blocks(), cols = shape.key_blocks();
  AttentionLayout out;
  out.offsets.assign(static_cast<size_t>(heads * cols + 1), 0);
  out.columns.resize(layout.columns.size());
  for (int64_t r = 0; r < heads * rows; ++r) {
    const int64_t first = r / rows * cols;
    for (int32_t e = layout.offsets[r]; e < layout.offsets[r + 1]; ++e) ++out.offsets[first + layout.columns[e] + 1];
  }
  for (size_t i = 1; i < out.offsets.size(); ++i) out.offsets[i] += out.offsets[i - 1];
  std::vector<int32_t> next(out.offsets.begin(), out.offsets.end() - 1);
  for (int64_t r = 0; r < heads * rows; ++r) {
    const int64_t first = r / rows * cols;
    for (int32_t e = layout.offsets[r]; e < layout.offsets[r + 1]; ++e) {
      out.columns[next[first + layout.columns[e]]++] = static_cast<int32_t>(r % rows);
    }
  }
  return out;
}

AttentionLists list_blocks(const AttentionShape& shape, const AttentionLayout& layout) {
  const AttentionBand band = shape.band(shape.seq_q, shape.seq_k);
  AttentionLists lists;
  lists.offsets.push_back(0);
  lists.entries.reserve(layout.columns.size());
  for (int64_t r = 0; r < shape.layout_rows(); ++r) {
    for (int32_t e = layout.offsets[r]; e < layout.offsets[r + 1]; ++e) {
      const Block b = block_at(shape, r % shape.query_blocks(), layout.columns[e]);
      const Cover seen = cover(band, b.i, b.i_end, b.j, b.j_end);
      if (seen == Cover::kNone) continue;
      const bool whole = b.i_end - b.i == shape.block_q && b.j_end - b.j == shape.block_k;
      lists.entries.push_back(layout.columns[e] | (whole && seen == Cover::kFull ? 0 : kPartialBlock));
    }
    lists.offsets.push_back(static_cast<int32_t>(lists.entries.size()));
  }
  return lists;
}

AttentionWork count_work(const AttentionShape& shape, const AttentionLists& lists) {
  const AttentionBand band = shape.band(shape.seq_q, shape.seq_k);
  AttentionWork work;
  for (int64_t r = 0; r < shape.layout_rows(); ++r) {
    for (int32_t e = lists.offsets[r]; e < lists.offsets[r + 1]; ++e) {
      const bool partial = (lists.entries[e] & kPartialBlock) != 0;
      const Block b = block_at(shape, r % shape.query_blocks(), lists.entries[e] & ~kPartialBlock);
      ++work.blocks;
      work.partial += partial ? 1 : 0;
      work.pairs += partial ? visible_pairs(band, b.i, b.i_end, b.j, b.j_end) : shape.block_q * shape.block_k;
    }
  }
  const int64_t users = shape.batch / shape.layout_batch * (shape.heads_q / shape.layout_heads);
  return {work.blocks * users, work.partial * users, work.pairs * users};
}

}  // namespace sparsek
