// SPDX-License-Identifier: Apache-2.0
#include "plan/attention_gradient_steps.h"

#include <algorithm>

#include "plan/attention_units.h"

namespace sparsek {
namespace {

int64_t units_of(int64_t rows) { return (rows + kAttentionUnit - 1) / kAttentionUnit; }
int64_t tiles_of(int64_t rows) { return (rows + kAttentionTile - 1) / kAttentionTile; }

// The steps of one tile after the other. First those that both warpgroups use, then those of one and of the other in
// turn, so that a warpgroup that keeps a step until its next one does not keep it long.
class StepList {
 public:
  explicit StepList(AttentionSteps& out) : out_(out) {}

  void add(const std::vector<uint32_t> (&words)[2], uint32_t head) {
    merge_units(words, units_);
    for (const uint32_t word : units_.both) out_.steps.push_back({{word, head}});
    for (int g = 0; g < 2; ++g) {
      for (const uint32_t word : units_.alone[g]) alone_[g].push_back({{word, head}});
    }
  }

  void end_tile() {
    for (size_t i = 0; i < std::max(alone_[0].size(), alone_[1].size()); ++i) {
      for (const auto& alone : alone_) {
        if (i < alone.size()) out_.steps.push_back(alone[i]);
      }
    }
    for (auto& alone : alone_) alone.clear();
    offsets_.push_back(count_of(out_));
  }

  const std::vector<int32_t>& offsets() const { return offsets_; }

 private:
  AttentionSteps& out_;
  std::vector<int32_t> offsets_ = {0};
  AttentionUnits units_;
  std::vector<AttentionStep> alone_[2];
};

// For each unit of keys, the units of queries that meet it, of each layout head: (layout_batch, layout_heads, units).
std::vector<std::vector<uint32_t>> transposed_units(const AttentionShape& shape, const AttentionLists& lists) {
  const int64_t heads = shape.layout_batch * shape.layout_heads, units_k = units_of(shape.seq_k);
  std::vector<std::vector<uint32_t>> out(static_cast<size_t>(heads * units_k));
  std::vector<uint32_t> words;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t unit = 0; unit < units_of(shape.seq_q); ++unit) {
      list_units(shape, lists, head * shape.query_blocks(), unit, words);
      for (const uint32_t word : words) {
        out[static_cast<size_t>(head * units_k + (word & kUnitNumber))].push_back(static_cast<uint32_t>(unit) |
                                                                                  (word & kPartialUnit));
      }
    }
  }
  return out;
}

}  // namespace

AttentionSteps make_query_gradient_steps(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes) {
  const int64_t tiles = tiles_of(shape.seq_q);
  AttentionSteps out;
  StepList list(out);
  std::vector<uint32_t> words[2];
  for (int64_t head = 0; head < shape.layout_batch * shape.layout_heads; ++head) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      for (int g = 0; g < 2; ++g) list_units(shape, lists, head * shape.query_blocks(), tile * 2 + g, words[g]);
      list.add(words, 0);
      list.end_tile();
    }
  }
  const auto list_of = [&](int64_t head) { return shape.layout_head(head / shape.heads_q, head % shape.heads_q); };
  const int64_t group = shape.heads_q / shape.heads_k;
  append_tiles({shape.batch * shape.heads_q, tiles, heads_at_once(shape, shape.seq_k, group, l2_bytes)}, list.offsets(),
               list_of, out);
  return out;
}

AttentionSteps make_key_gradient_steps(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes) {
  const int64_t tiles = tiles_of(shape.seq_k), units_k = units_of(shape.seq_k), group = shape.heads_q / shape.heads_k;
  const std::vector<std::vector<uint32_t>> queries = transposed_units(shape, lists);
  // Where all query heads have one layout, all key heads have one list.
  const int64_t heads = shape.layout_heads == 1 ? 1 : shape.heads_k;
  AttentionSteps out;
  StepList list(out);
  std::vector<uint32_t> words[2];
  for (int64_t at = 0; at < shape.layout_batch * heads; ++at) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      for (int64_t h = 0; h < group; ++h) {
        const int64_t layout_head = shape.layout_head(at / heads, at % heads * group + h);
        for (int g = 0; g < 2; ++g) {
          const int64_t unit = tile * 2 + g;
          words[g].clear();
          if (unit < units_k) words[g] = queries[static_cast<size_t>(layout_head * units_k + unit)];
        }
        list.add(words, static_cast<uint32_t>(h));
      }
      list.end_tile();
    }
  }
  const auto list_of = [&](int64_t head) {
    return (shape.layout_batch == 1 ? 0 : head / shape.heads_k) * heads + (heads == 1 ? 0 : head % shape.heads_k);
  };
  append_tiles({shape.batch * shape.heads_k, tiles, heads_at_once(shape, shape.seq_q * group, 1, l2_bytes)},
               list.offsets(), list_of, out);
  return out;
}

bool keys_mostly_alone(const AttentionShape& shape, const AttentionLists& lists) {
  const int64_t units = shape.block_k / kAttentionUnit, units_k = units_of(shape.seq_k);
  int64_t steps = 0, alone = 0;
  for (int64_t r = 0; r < shape.layout_rows(); ++r) {
    int64_t last = -1;  // the tile of the unit before, in ascending order
    for (int32_t e = lists.offsets[r]; e < lists.offsets[r + 1]; ++e) {
      const int64_t first = (lists.entries[e] & ~kPartialBlock) * units, end = std::min(first + units, units_k);
      for (int64_t unit = first; unit < end; ++unit) {
        const bool is_second = unit / 2 == last;
        steps += is_second ? 0 : 1;
        alone += is_second ? -1 : 1;
        last = unit / 2;
      }
    }
  }
  return 4 * alone > 3 * steps;
}

}  // namespace sparsek
