// SPDX-License-Identifier: Apache-2.0
#include "plan/attention_pieces.h"

#include <algorithm>

#include "plan/attention_units.h"

namespace sparsek {
namespace {

int64_t tiles_of(int64_t rows) { return (rows + kAttentionTile - 1) / kAttentionTile; }

// Rows that a tile meets, of one box: its word, of its first piece.
using Words = std::vector<uint32_t>;

uint32_t number_of(uint32_t word) { return word & kPieceNumber; }
bool uses(uint32_t word, int g) { return (word >> kPieceBits & kPieceRowsOfUnit << 4 * g) != 0; }

// One of the two kinds of rows: those of a tile, or those that they meet.
struct Side {
  int64_t seq, block;
};

// What the tiles of one layout head meet.
class TileWords {
 public:
  TileWords(const AttentionShape& shape, bool of_keys, int32_t step_rows)
      : own_(of_keys ? Side{shape.seq_k, shape.block_k} : Side{shape.seq_q, shape.block_q}),
        met_(of_keys ? Side{shape.seq_q, shape.block_q} : Side{shape.seq_k, shape.block_k}),
        of_keys_(of_keys),
        box_(attention_box(met_.block, step_rows)),
        query_blocks_(shape.query_blocks()) {
    const AttentionBand band = shape.band(shape.seq_q, shape.seq_k);
    band_ = of_keys ? AttentionBand{-band.high, -band.low} : band;
  }

  int32_t box() const { return box_; }

  // Of each tile, ascending.
  const std::vector<Words>& list(const AttentionLists& lists, int64_t head) {
    words_.assign(static_cast<size_t>(tiles_of(own_.seq)), {});
    for (int64_t row = 0; row < query_blocks_; ++row) {
      const int64_t at = head * query_blocks_ + row;
      for (int32_t e = lists.offsets[at]; e < lists.offsets[at + 1]; ++e) {
        const int64_t column = lists.entries[e] & ~kPartialBlock;
        add_block(of_keys_ ? column : row, of_keys_ ? row : column, (lists.entries[e] & kPartialBlock) != 0);
      }
    }
    for (Words& words : words_) merge(words);
    return words_;
  }

 private:
  void add_block(int64_t own, int64_t met, bool partial) {
    const int64_t begin = own * own_.block, end = std::min(begin + own_.block, own_.seq);
    for (int64_t tile = begin / kAttentionTile; tile * kAttentionTile < end; ++tile) {
      const int64_t first = std::max(begin, tile * kAttentionTile), last = std::min(end, (tile + 1) * kAttentionTile);
      for (int64_t m = met * met_.block; m < std::min((met + 1) * met_.block, met_.seq); m += box_) {
        const uint32_t word = partial ? partial_word(tile, first, last, m) : rows_word(tile, first, last);
        if (word != 0) words_[static_cast<size_t>(tile)].push_back(word | static_cast<uint32_t>(m / kAttentionPiece));
      }
    }
  }

  static uint32_t rows_word(int64_t tile, int64_t first, int64_t last) {
    uint32_t word = 0;
    for (int64_t i = first; i < last; i += kAttentionPiece) word |= bit_of(tile, i);
    return word;
  }
  uint32_t partial_word(int64_t tile, int64_t first, int64_t last, int64_t m) const {
    const int64_t m_end = std::min(m + box_, met_.seq);
    uint32_t word = 0;
    for (int64_t i = first; i < last; i += kAttentionPiece) {
      const Cover seen = cover(band_, i, std::min(i + kAttentionPiece, last), m, m_end);
      if (seen == Cover::kNone) continue;
      word |= bit_of(tile, i);
      if (seen == Cover::kPartial || m_end - m < box_) word |= kPartialUnit;
    }
    return word;
  }
  static uint32_t bit_of(int64_t tile, int64_t i) {
    return 1u << (kPieceBits + (i - tile * kAttentionTile) / kAttentionPiece);
  }

  // Several blocks of a tile may meet one box.
  static void merge(Words& words) {
    std::sort(words.begin(), words.end(), [](uint32_t a, uint32_t b) { return number_of(a) < number_of(b); });
    size_t count = 0;
    for (const uint32_t word : words) {
      if (count > 0 && number_of(words[count - 1]) == number_of(word)) {
        words[count - 1] |= word;
      } else {
        words[count++] = word;
      }
    }
    words.resize(count);
  }

  const Side own_, met_;
  const bool of_keys_;
  const int32_t box_;
  const int64_t query_blocks_;
  AttentionBand band_;
  std::vector<Words> words_;
};

// Steps of `pieces` pieces, of one tile after the other.
class PieceSteps {
 public:
  PieceSteps(AttentionSteps& out, int32_t pieces)
      : out_(out), pieces_(pieces), boxes_(pieces * kAttentionPiece / out.box) {}

  // First boxes that both warpgroups use, then those of one and of the other in turn, and what is left of both together
  // where one step holds it.
  void add(const Words& words, uint32_t head) {
    Words both, alone[2];
    for (const uint32_t word : words) {
      (!uses(word, 1) ? alone[0] : uses(word, 0) ? both : alone[1]).push_back(word);
    }
    size_t at = 0, of[2] = {0, 0};
    for (; at + boxes_ <= both.size(); at += boxes_) push(&both[at], boxes_, head);
    step_.assign(both.begin() + static_cast<std::ptrdiff_t>(at), both.end());
    const auto left = [&](int g) { return alone[g].size() - of[g]; };
    const auto take = [&](int g) { step_.push_back(alone[g][of[g]++]); };
    if (!step_.empty()) {
      for (int g : {left(1) > left(0) ? 1 : 0, left(1) > left(0) ? 0 : 1}) {
        while (step_.size() < boxes_ && left(g) > 0) take(g);
      }
      push_step(head);
    }
    while (left(0) + left(1) > 0) {
      const bool together = left(0) + left(1) <= boxes_;
      for (int g = 0; g < 2; ++g) {
        while (step_.size() < boxes_ && left(g) > 0) take(g);
        if (!together || g == 1) push_step(head);
      }
    }
  }

  void end_tile() { offsets_.push_back(count_of(out_)); }
  const std::vector<int32_t>& offsets() const { return offsets_; }

 private:
  void push_step(uint32_t head) {
    if (!step_.empty()) push(step_.data(), step_.size(), head);
    step_.clear();
  }
  // Padding repeats a box, so that what is copied is there.
  void push(const uint32_t* words, size_t count, uint32_t head) {
    AttentionPieces step = {};
    const int32_t of_box = out_.box / kAttentionPiece;
    for (int32_t i = 0; i < pieces_; ++i) {
      const auto box = static_cast<size_t>(i / of_box);
      step.word[i] = (box < count ? words[box] : number_of(words[0])) + static_cast<uint32_t>(i % of_box);
    }
    uint32_t whole = kPieceRows;
    for (int32_t i = 0; i < pieces_; ++i) {
      const uint32_t word = step.word[i], rows = word >> kPieceBits & kPieceRows;
      for (int g = 0; g < 2; ++g) step.used |= uses(word, g) ? 1u << (8 * g + i) : 0;
      whole &= (word & kPartialUnit) != 0 ? 0 : rows;
      step.end = std::max(step.end, (static_cast<int32_t>(number_of(word)) + 1) * kAttentionPiece);
    }
    step.used |= whole << 16;
    step.head = head;
    out_.pieces.push_back(step);
  }

  AttentionSteps& out_;
  const int32_t pieces_;
  const size_t boxes_;  // of a step
  std::vector<int32_t> offsets_ = {0};
  Words step_;
};

}  // namespace

int32_t attention_box(int64_t block, int32_t step_rows) {
  int32_t box = std::min(step_rows, kAttentionUnit);
  while (block % box != 0) box /= 2;
  return box;
}

bool has_attention_pieces(const AttentionShape& shape) {
  return shape.block_q % kAttentionPiece == 0 && shape.block_k % kAttentionPiece == 0;
}

AttentionSteps make_query_pieces(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes,
                                 int32_t step_rows) {
  TileWords words(shape, false, step_rows);
  AttentionSteps out;
  out.box = words.box();
  PieceSteps steps(out, step_rows / kAttentionPiece);
  for (int64_t head = 0; head < shape.layout_batch * shape.layout_heads; ++head) {
    for (const Words& of_tile : words.list(lists, head)) {
      steps.add(of_tile, 0);
      steps.end_tile();
    }
  }
  const auto list_of = [&](int64_t head) { return shape.layout_head(head / shape.heads_q, head % shape.heads_q); };
  const int64_t group = shape.heads_q / shape.heads_k;
  append_tiles({shape.batch * shape.heads_q, tiles_of(shape.seq_q), heads_at_once(shape, shape.seq_k, group, l2_bytes)},
               steps.offsets(), list_of, out);
  return out;
}

AttentionSteps make_key_pieces(const AttentionShape& shape, const AttentionLists& lists, int64_t l2_bytes,
                               int32_t step_rows) {
  const int64_t group = shape.heads_q / shape.heads_k, tiles = tiles_of(shape.seq_k);
  // Where all query heads have one layout, all key heads have one list.
  const int64_t heads = shape.layout_heads == 1 ? 1 : shape.heads_k;
  TileWords words(shape, true, step_rows);
  AttentionSteps out;
  out.box = words.box();
  PieceSteps steps(out, step_rows / kAttentionPiece);
  std::vector<std::vector<Words>> of_group(static_cast<size_t>(group));
  for (int64_t at = 0; at < shape.layout_batch * heads; ++at) {
    for (int64_t h = 0; h < group; ++h) {
      of_group[static_cast<size_t>(h)] = words.list(lists, shape.layout_head(at / heads, at % heads * group + h));
    }
    for (int64_t tile = 0; tile < tiles; ++tile) {
      for (int64_t h = 0; h < group; ++h) {
        steps.add(of_group[static_cast<size_t>(h)][static_cast<size_t>(tile)], static_cast<uint32_t>(h));
      }
      steps.end_tile();
    }
  }
  const auto list_of = [&](int64_t head) {
    return (shape.layout_batch == 1 ? 0 : head / shape.heads_k) * heads + (heads == 1 ? 0 : head % shape.heads_k);
  };
  append_tiles({shape.batch * shape.heads_k, tiles, heads_at_once(shape, shape.seq_q * group, 1, l2_bytes)},
               steps.offsets(), list_of, out);
  return out;
}

}  // namespace sparsek
