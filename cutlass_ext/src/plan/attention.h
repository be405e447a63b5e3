// SPDX-License-Identifier: Apache-2.0
// What attention is computed over: its sizes and rules, the blocks of its layout, and which of them the rules leave.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsek.h"

namespace sparsek {

// Query i sees key j where low <= j - i <= high.
struct AttentionBand {
  int64_t low, high;
};

// How much of a block its queries see.
enum class Cover { kNone, kPartial, kFull };

struct AttentionShape {
  int64_t batch = 1, heads_q = 1, heads_k = 1;
  int64_t seq_q = 0, seq_k = 0;
  int64_t head_size = 1, head_size_v = 1;
  int64_t block_q = 1, block_k = 1;
  int64_t layout_batch = 1, layout_heads = 1;
  bool left = false, right = false, align_ends = false;
  bool any_order = false;  // the parts of the gradient of queries may be added in any order
  int64_t window_left = 0, window_right = 0;
  double scale = 1;
  double soft_cap = 0;  // 0: none
  sparsek_dtype dtype = SPARSEK_BF16;
  sparsek_dtype dtype_o = SPARSEK_BF16;  // of O
  int32_t workers = 0;                   // 0: all

  int64_t query_blocks() const { return (seq_q + block_q - 1) / block_q; }
  int64_t key_blocks() const { return (seq_k + block_k - 1) / block_k; }
  int64_t layout_rows() const { return layout_batch * layout_heads * query_blocks(); }
  // Of a batch and query head, counted over the layout's batches; and its first layout row.
  int64_t layout_head(int64_t b, int64_t head_q) const {
    return (layout_batch == 1 ? 0 : b) * layout_heads + head_q / (heads_q / layout_heads);
  }
  int64_t layout_row(int64_t b, int64_t head_q) const { return layout_head(b, head_q) * query_blocks(); }
  int64_t head_k(int64_t head_q) const { return head_q / (heads_q / heads_k); }
  AttentionBand band(int64_t length_q, int64_t length_k) const;
};

// Whether keys and values lie in pages of a cache.
inline bool has_pages(const sparsek_attention_args& args) { return args.page_rows > 0; }

// Of queries [i, i_end) and keys [j, j_end), neither empty.
Cover cover(const AttentionBand& band, int64_t i, int64_t i_end, int64_t j, int64_t j_end);

// The blocks of a layout: row r, of layout_row(b, h) + query block, has the key blocks columns[offsets[r]] up to
// columns[offsets[r + 1]], in ascending order.
struct AttentionLayout {
  std::vector<int32_t> offsets;  // (layout_rows + 1)
  std::vector<int32_t> columns;
};

// Every block.
AttentionLayout whole_layout(const AttentionShape& shape);
// Of each layout batch and head: row c of `columns` key blocks has the query blocks in which it is listed.
AttentionLayout transposed(const AttentionShape& shape, const AttentionLayout& layout);

// A layout without the blocks that no query sees, where all lengths are seq_q and seq_k. An entry is a key block, plus
// kPartialBlock where a rule or the end of a sequence cuts it.
constexpr int32_t kPartialBlock = INT32_MIN;
struct AttentionLists {
  std::vector<int32_t> offsets;  // (layout_rows + 1)
  std::vector<int32_t> entries;
};
AttentionLists list_blocks(const AttentionShape& shape, const AttentionLayout& layout);

// Of one call with these lengths, over all batches and heads.
struct AttentionWork {
  int64_t blocks = 0, partial = 0, pairs = 0;
};
AttentionWork count_work(const AttentionShape& shape, const AttentionLists& lists);

}  // namespace sparsek
