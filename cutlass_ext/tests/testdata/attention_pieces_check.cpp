// SPDX-License-Identifier: Apache-2.0
// The steps of attention's kernels in pieces (plan/attention_pieces.h), of random layouts and rules, against what they
// stand for: each 16 queries and 16 keys, of which some see each other, are a bit of one piece.
#include <algorithm>
#include <set>
#include <tuple>

#include "attention_case.h"
#include "plan/attention_pieces.h"

using namespace sparsek;

namespace {

using Pair = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // batch, query head, and pieces of queries and keys

// All pairs, and whether all of their queries see all of their keys.
std::map<Pair, bool> pairs(const Case& c) {
  std::map<Pair, bool> all;
  for (int64_t b = 0; b < c.shape.batch; ++b) {
    for (int64_t h = 0; h < c.shape.heads_q; ++h) {
      for (int64_t i = 0; i < c.shape.seq_q; i += kAttentionPiece) {
        for (const auto& [piece, full] : needed(c, b, h, i, kAttentionPiece)) {
          all[{b, h, i / kAttentionPiece, piece}] = full;
        }
      }
    }
  }
  return all;
}

bool is_summed_up(const AttentionPieces& step, int pieces) {
  int32_t end = 0;
  for (int k = 0; k < pieces; ++k) {
    const uint32_t word = step.word[k];
    end = std::max(end, static_cast<int32_t>((word & kPieceNumber) + 1) * kAttentionPiece);
    for (int r = 0; r < 8; ++r) {
      const bool has = (word >> (kPieceBits + r) & 1) != 0, whole = (step.used >> (16 + r) & 1) != 0;
      if (has && (step.used >> (r / 4 * 8 + k) & 1) == 0) return false;
      if (whole && (!has || (word & kPartialUnit) != 0)) return false;
    }
  }
  return step.end == end;
}

// Pairs that a copy brings along may have bits as long as they are marked and hidden; those that are needed must.
void check(const Case& c, const AttentionSteps& steps, bool of_keys, int pieces) {
  std::map<Pair, bool> want = pairs(c);
  const AttentionShape& s = c.shape;
  const int64_t heads = of_keys ? s.heads_k : s.heads_q, group = s.heads_q / s.heads_k;
  const int64_t rows = of_keys ? s.seq_k : s.seq_q, met_rows = of_keys ? s.seq_q : s.seq_k;
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const WorkTile& tile : steps.tiles) {
    if (!seen.insert({tile.m_tile, tile.n_tile}).second) wrong("a tile twice");
    const int64_t batch = tile.n_tile / heads, head = tile.n_tile % heads;
    for (int32_t i = 0; i < tile.entry_count; ++i) {
      const AttentionPieces& step = steps.pieces[static_cast<size_t>(tile.entry_begin + i)];
      if (!is_summed_up(step, pieces)) wrong("what a step says of its pieces");
      uint32_t bits = 0;
      for (int k = 0; k < pieces; ++k) {
        const int64_t number = step.word[k] & kPieceNumber, of_box = steps.box / kAttentionPiece;
        if (k % of_box == 0 && number % of_box != 0) wrong("a box that is not aligned");
        if (k % of_box != 0 && number != (step.word[k - 1] & kPieceNumber) + 1) wrong("a box in parts");
        bits |= step.word[k] >> kPieceBits & kPieceRows;
        for (int r = 0; r < 8; ++r) {
          if ((step.word[k] >> (kPieceBits + r) & 1) == 0) continue;
          const int64_t own = tile.m_tile * 8 + r, query_head = of_keys ? head * group + step.head : head;
          if (own * kAttentionPiece >= rows) wrong("a bit beyond the end");
          if (number * kAttentionPiece >= met_rows) {
            if ((step.word[k] & kPartialUnit) == 0) wrong("a piece beyond the end without its mark");
            continue;
          }
          const Pair pair = of_keys ? Pair{batch, query_head, number, own} : Pair{batch, query_head, own, number};
          const auto at = want.find(pair);
          const bool listed =
              lists(c, batch, query_head, std::get<2>(pair) * kAttentionPiece, std::get<3>(pair) * kAttentionPiece);
          if (!listed) wrong("a pair that no block has");
          // Own rows beyond the end are not stored, so what they see is of no account.
          const bool ends = of_keys && (own + 1) * kAttentionPiece > rows;
          if ((at == want.end() || !at->second) && !ends && (step.word[k] & kPartialUnit) == 0) {
            wrong("a mark is missing");
          }
          if (at != want.end()) want.erase(at);
        }
      }
      if (bits == 0) wrong("a step that nobody uses");
    }
  }
  if (!want.empty()) wrong("a pair is missing");
  const int64_t tiles = (rows + kAttentionTile - 1) / kAttentionTile;
  if (static_cast<int64_t>(seen.size()) != tiles * s.batch * heads) wrong("tiles are missing");
}

}  // namespace

int main() {
  for (int i = 0; i < 100; ++i) {
    const Case c = random_case(kAttentionPiece);
    const AttentionLists lists = list_blocks(c.shape, c.layout);
    const int64_t l2_bytes = draw(0, 1) == 0 ? 1 : 1 << 18;
    for (const int rows : {32, 64, 128}) {
      check(c, make_query_pieces(c.shape, lists, l2_bytes, rows), false, rows / kAttentionPiece);
    }
    for (const int rows : {32, 64})
      check(c, make_key_pieces(c.shape, lists, l2_bytes, rows), true, rows / kAttentionPiece);
  }
}
