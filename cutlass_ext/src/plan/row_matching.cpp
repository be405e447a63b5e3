// SPDX-License-Identifier: Apache-2.0
#include "plan/row_matching.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "abi/error.h"
#include "plan/column_bits.h"
#include "plan/pairing.h"

namespace sparsek {
namespace {

// Bundles of block rows that stay together, all of the same number of rows.
struct Bundles {
  int32_t size;  // rows of a bundle
  int32_t count;
  std::vector<int32_t> rows;    // (count, size)
  std::vector<int32_t> blocks;  // (count): stored blocks
  ColumnBits columns;           // those that one of the rows has

  Bundles(int32_t size_, int32_t count_, size_t words)
      : size(size_), count(count_), rows(size_t(size) * count), blocks(count), columns(words, count) {}
};

constexpr int32_t kNobody = -1;

// The partner of each of an even number of bundles. Two that are each other's best partner are also a pair where the
// best pair of all that remain is taken again and again. So it is enough to go from any bundle to its best partner, and
// from there to that one's, until two point at each other: on this way merits only rise. When these two are taken, the
// way goes on from the bundle before them. A bundle is compared with the others once when the way comes to it, and
// again for each pair behind it: three times for two bundles.
std::vector<int32_t> find_partners(const Bundles& bundles, int64_t most) {
  std::vector<int32_t> partner(bundles.count, kNobody), way, alone;
  Unpaired left(bundles.columns, bundles.blocks);
  for (int32_t first = 0; first < bundles.count; ++first) {
    if (partner[first] == kNobody) way.push_back(first);
    while (!way.empty()) {
      const int32_t i = way.back();
      const Merit merit = left.best(i, most);
      if (merit == kNoMerit) {
        left.remove(i);
        alone.push_back(i);
        way.pop_back();
        continue;
      }
      const int32_t other = partner_of(merit, i);
      if (way.size() < 2 || way[way.size() - 2] != other) {
        way.push_back(other);
        continue;
      }
      partner[i] = other;
      partner[other] = i;
      left.remove(i);
      left.remove(other);
      way.resize(way.size() - 2);
    }
  }
  // The remaining bundles are too long for each other: pair the longest with the shortest.
  std::sort(alone.begin(), alone.end(), [&](int32_t a, int32_t b) {
    return bundles.blocks[a] != bundles.blocks[b] ? bundles.blocks[a] > bundles.blocks[b] : a < b;
  });
  for (size_t k = 0; k < alone.size(); ++k) partner[alone[k]] = alone[alone.size() - 1 - k];
  return partner;
}

Bundles pair_up(const Bundles& bundles, int64_t most) {
  const std::vector<int32_t> partner = find_partners(bundles, most);
  std::vector<std::pair<int32_t, int32_t>> both;
  both.reserve(bundles.count / 2);
  for (int32_t i = 0; i < bundles.count; ++i) {
    if (i < partner[i]) both.emplace_back(i, partner[i]);
  }
  Bundles pairs(bundles.size * 2, bundles.count / 2, bundles.columns.words());
  int32_t* row = pairs.rows.data();
  int32_t* blocks = pairs.blocks.data();
  for (const auto& [i, j] : both) {
    row = std::copy_n(bundles.rows.data() + size_t(i) * bundles.size, bundles.size, row);
    row = std::copy_n(bundles.rows.data() + size_t(j) * bundles.size, bundles.size, row);
    *blocks++ = bundles.blocks[i] + bundles.blocks[j];
  }
  for (size_t w = 0; w < bundles.columns.words(); ++w) {
    const uint32_t* const from = bundles.columns.word(w);
    uint32_t* to = pairs.columns.word(w);
    for (const auto& [i, j] : both) *to++ = from[i] | from[j];
  }
  return pairs;
}

int32_t blocks_of(const BsrIndex& index, int32_t row) {
  return row < index.block_rows ? index.row_ptr[row + 1] - index.row_ptr[row] : 0;
}

// The blocks of the longest group of `size` neighbours.
int64_t longest_of(const BsrIndex& index, int32_t size) {
  int64_t longest = 0;
  for (int64_t first = 0; first < index.block_rows; first += size) {
    const int64_t end = std::min<int64_t>(first + size, index.block_rows);
    longest = std::max<int64_t>(longest, index.row_ptr[end] - index.row_ptr[first]);
  }
  return longest;
}

// Numbers the block columns of some rows, for the bits of bundles.
class Numbering {
 public:
  explicit Numbering(const BsrIndex& index) : index_(index) {}

  // Makes a bundle of each of the rows, and adds to `unshared` the blocks whose columns get no bit: those that no other
  // row has are never in common, and where blocks are few and columns many, they are the majority.
  Bundles bundle(const int32_t* rows, int32_t count, int64_t& unshared);

 private:
  static constexpr int32_t kUnseen = -1, kOnce = -2;

  template <class Visit>
  void each_block(const int32_t* rows, int32_t count, const Visit& visit) const {
    for (int32_t i = 0; i < count; ++i) {
      if (rows[i] >= index_.block_rows) continue;
      for (int32_t b = index_.row_ptr[rows[i]]; b < index_.row_ptr[rows[i] + 1]; ++b) visit(i, index_.col_idx[b]);
    }
  }

  const BsrIndex& index_;
  std::vector<int32_t> place_;  // of each column: kUnseen between bundles
};

Bundles Numbering::bundle(const int32_t* rows, int32_t count, int64_t& unshared) {
  std::vector<int32_t> blocks(count);
  for (int32_t i = 0; i < count; ++i) blocks[i] = blocks_of(index_, rows[i]);
  const bool few_columns = index_.block_cols <= std::accumulate(blocks.begin(), blocks.end(), int64_t{0});
  int32_t columns = index_.block_cols;
  if (!few_columns) {
    place_.resize(index_.block_cols, kUnseen);
    columns = 0;
    each_block(rows, count, [&](int32_t, int32_t col) {
      int32_t& at = place_[col];
      at = at == kUnseen ? kOnce : at == kOnce ? columns++ : at;
    });
  }
  Bundles bundles(1, count, (static_cast<size_t>(columns) + 31) / 32);
  bundles.rows.assign(rows, rows + count);
  bundles.blocks = std::move(blocks);
  uint32_t* const bits = bundles.columns.word(0);
  const size_t stride = bundles.columns.stride();
  if (few_columns) {
    // A word is written again with each bit, and never read: waiting for what was just written takes longer.
    for (int32_t i = 0; i < count; ++i) {
      if (rows[i] >= index_.block_rows) continue;
      uint32_t word = 0;
      int32_t before = 0;
      for (int32_t b = index_.row_ptr[rows[i]]; b < index_.row_ptr[rows[i] + 1]; ++b) {
        const int32_t at = index_.col_idx[b] / 32;
        word = (at == before ? word : 0) | uint32_t{1} << index_.col_idx[b] % 32;
        bits[at * stride + i] = word;
        before = at;
      }
    }
    return bundles;
  }
  each_block(rows, count, [&](int32_t i, int32_t col) {
    const int32_t at = place_[col];
    if (at >= 0) bits[at / 32 * stride + i] |= uint32_t{1} << at % 32;
    unshared += at < 0;
  });
  each_block(rows, count, [&](int32_t, int32_t col) { place_[col] = kUnseen; });
  return bundles;
}

}  // namespace

MatchedRows match_rows(const BsrIndex& index, std::vector<int32_t> order, int32_t group) {
  if (group < 1 || group > kMostMatched || (group & (group - 1)) != 0) {
    fail(SPARSEK_INTERNAL, "rows are matched in groups of %d", group);
  }
  const size_t groups = (order.size() + group - 1) / group;
  for (auto none = static_cast<int32_t>(order.size()); order.size() < groups * group; ++none) order.push_back(none);
  std::vector<int64_t> most;  // limit on the blocks of a pair, for each level
  for (int32_t size = 2; size <= group; size *= 2) most.push_back(most_blocks(longest_of(index, size)));
  const size_t together = rows_matched_together(index.block_cols, group);
  MatchedRows matched;
  matched.rows.reserve(order.size());
  Numbering numbering(index);
  for (size_t first = 0; first < order.size(); first += together) {
    const auto count = static_cast<int32_t>(std::min(together, order.size() - first));
    Bundles bundles = numbering.bundle(order.data() + first, count, matched.loads);
    for (const int64_t of_level : most) bundles = pair_up(bundles, of_level);
    matched.rows.insert(matched.rows.end(), bundles.rows.begin(), bundles.rows.end());
    matched.loads += bundles.columns.count();
    for (const int32_t blocks : bundles.blocks) matched.longest = std::max<int64_t>(matched.longest, blocks);
  }
  return matched;
}

}  // namespace sparsek
