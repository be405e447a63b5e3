// SPDX-License-Identifier: Apache-2.0
#include "plan/row_matching.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <numeric>

#include "abi/error.h"

namespace sparsek {
namespace {

// Limits on the rows that are matched with each other: fewer where the matrix has many block columns.
constexpr int32_t kMostRows = 512;
constexpr size_t kMostWords = size_t{1} << 21;  // of 64 block columns, compared at the first level

// Bundles of block rows that stay together, all of the same number of rows.
struct Bundles {
  int32_t size;  // rows of a bundle
  int32_t count;
  size_t words;
  std::vector<int32_t> rows;      // (count, size)
  std::vector<uint64_t> columns;  // (count, words): a bit for each block column that one of the rows has
  std::vector<int64_t> blocks;    // (count): stored blocks

  Bundles(int32_t size_, int32_t count_, size_t words_)
      : size(size_), count(count_), words(words_), rows(size_t(size) * count), columns(words * count), blocks(count) {}
};

constexpr int32_t kNobody = -1;

// The gain of pairing bundles i and j: the number of columns that they have in common. Ties go to the partner whose
// number differs in lower bits. No two partners of i tie completely, so a merit identifies the partner; and neighbours
// stay together where nothing else is better.
using Merit = int64_t;
constexpr Merit kNone = -1;

constexpr Merit merit_of(int32_t common, int32_t i, int32_t j) { return Merit{common} << 32 | (INT_MAX - (i ^ j)); }
constexpr int32_t partner_of(Merit merit, int32_t i) { return i ^ (INT_MAX - static_cast<int32_t>(merit & INT_MAX)); }

struct Search {
  std::vector<int32_t>
      in_common;            // (count, count):(count, 1): block columns that bundles i > j have in common, at (i, j)
  std::vector<Merit> best;  // (count): the best merit of each bundle

  explicit Search(int32_t count) : in_common(size_t(count) * count), best(count, kNone) {}
};

// Without a branch, which would often be mispredicted: the counts are irregular.
[[gnu::always_inline]] inline void compare_all(const Bundles& bundles, int64_t most_blocks, Search& search) {
  const int32_t n = bundles.count;
  for (int32_t i = 0; i < n; ++i) {
    const uint64_t* const a = bundles.columns.data() + i * bundles.words;
    int32_t* const with_i = search.in_common.data() + size_t(i) * n;
    Merit best = kNone;
    for (int32_t j = 0; j < i; ++j) {
      const uint64_t* const b = bundles.columns.data() + j * bundles.words;
      int32_t common = 0;
      for (size_t w = 0; w < bundles.words; ++w) common += __builtin_popcountll(a[w] & b[w]);
      with_i[j] = common;
      const bool fits = bundles.blocks[i] + bundles.blocks[j] <= most_blocks;
      const Merit merit = fits ? merit_of(common, i, j) : kNone;
      best = std::max(best, merit);
      search.best[j] = std::max(search.best[j], merit);
    }
    search.best[i] = best;
  }
}

#ifdef __x86_64__
// popcnt is not part of the x86-64 baseline, and without it counting takes several times as long.
[[gnu::target("popcnt")]] void compare_all_by_popcnt(const Bundles& bundles, int64_t most_blocks, Search& search) {
  compare_all(bundles, most_blocks, search);
}
#endif

Search search_partners(const Bundles& bundles, int64_t most_blocks) {
  Search search(bundles.count);
#ifdef __x86_64__
  if (__builtin_cpu_supports("popcnt")) {
    compare_all_by_popcnt(bundles, most_blocks, search);
    return search;
  }
#endif
  compare_all(bundles, most_blocks, search);
  return search;
}

// The partner of each of an even number of bundles. In each round every bundle picks the partner with the highest
// merit; two that pick each other become a pair, and bundles whose choice is taken pick again. Each round makes at
// least one pair: the one with the highest merit of all that remain.
std::vector<int32_t> find_partners(const Bundles& bundles, int64_t most_blocks) {
  const int32_t n = bundles.count;
  Search search = search_partners(bundles, most_blocks);
  std::vector<int32_t> left(n), partner(n, kNobody);
  std::iota(left.begin(), left.end(), 0);
  const auto taken = [&](int32_t i) { return partner[i] != kNobody; };
  for (bool found = true; found;) {
    found = false;
    for (const int32_t i : left) {
      if (search.best[i] == kNone) continue;
      const int32_t other = partner_of(search.best[i], i);
      if (search.best[other] != search.best[i]) continue;
      partner[i] = other;
      found = true;
    }
    left.erase(std::remove_if(left.begin(), left.end(), taken), left.end());
    for (const int32_t i : left) {
      if (search.best[i] == kNone || !taken(partner_of(search.best[i], i))) continue;
      search.best[i] = kNone;
      for (const int32_t j : left) {
        if (j == i || bundles.blocks[i] + bundles.blocks[j] > most_blocks) continue;
        const int32_t common = search.in_common[size_t(std::max(i, j)) * n + std::min(i, j)];
        search.best[i] = std::max(search.best[i], merit_of(common, i, j));
      }
    }
  }
  // The remaining bundles are too long for each other: pair the longest with the shortest.
  std::stable_sort(left.begin(), left.end(),
                   [&](int32_t a, int32_t b) { return bundles.blocks[a] > bundles.blocks[b]; });
  for (size_t k = 0; k < left.size(); ++k) partner[left[k]] = left[left.size() - 1 - k];
  return partner;
}

Bundles pair_up(const Bundles& bundles, int64_t most_blocks) {
  const std::vector<int32_t> partner = find_partners(bundles, most_blocks);
  Bundles pairs(bundles.size * 2, bundles.count / 2, bundles.words);
  int32_t* row = pairs.rows.data();
  uint64_t* columns = pairs.columns.data();
  int64_t* blocks = pairs.blocks.data();
  for (int32_t i = 0; i < bundles.count; ++i) {
    const int32_t j = partner[i];
    if (j < i) continue;
    row = std::copy_n(bundles.rows.data() + size_t(i) * bundles.size, bundles.size, row);
    row = std::copy_n(bundles.rows.data() + size_t(j) * bundles.size, bundles.size, row);
    for (size_t w = 0; w < bundles.words; ++w) {
      *columns++ = bundles.columns[i * bundles.words + w] | bundles.columns[j * bundles.words + w];
    }
    *blocks++ = bundles.blocks[i] + bundles.blocks[j];
  }
  return pairs;
}

int64_t blocks_of(const BsrIndex& index, int64_t row) {
  return row < index.block_rows ? index.row_ptr[row + 1] - index.row_ptr[row] : 0;
}

// The largest number of blocks in a group of `size` neighbours.
int64_t longest_of(const BsrIndex& index, int32_t size) {
  int64_t longest = 0;
  for (int64_t first = 0; first < index.block_rows; first += size) {
    const int64_t end = std::min<int64_t>(first + size, index.block_rows);
    longest = std::max<int64_t>(longest, index.row_ptr[end] - index.row_ptr[first]);
  }
  return longest;
}

// Makes a bundle of each of the rows. Only columns that at least two rows have get a bit: the others are never in
// common, and where blocks are few and columns many, they are the majority. place: scratch, -1 for each block column
// before and after.
Bundles bundle_rows(const BsrIndex& index, const int32_t* rows, int32_t count, std::vector<int32_t>& place) {
  constexpr int32_t kUnseen = -1, kOnce = -2;
  const auto each_block = [&](auto visit) {
    for (int32_t i = 0; i < count; ++i) {
      if (rows[i] >= index.block_rows) continue;
      for (int32_t b = index.row_ptr[rows[i]]; b < index.row_ptr[rows[i] + 1]; ++b) visit(i, place[index.col_idx[b]]);
    }
  };
  int32_t shared = 0;
  each_block([&](int32_t, int32_t& at) { at = at == kUnseen ? kOnce : at == kOnce ? shared++ : at; });
  Bundles bundles(1, count, (static_cast<size_t>(shared) + 63) / 64);
  each_block([&](int32_t i, int32_t at) {
    if (at >= 0) bundles.columns[i * bundles.words + at / 64] |= uint64_t{1} << at % 64;
  });
  each_block([&](int32_t, int32_t& at) { at = kUnseen; });
  for (int32_t i = 0; i < count; ++i) {
    bundles.rows[i] = rows[i];
    bundles.blocks[i] = blocks_of(index, rows[i]);
  }
  return bundles;
}

}  // namespace

int32_t rows_matched_together(const BsrIndex& index, int32_t group) {
  const size_t words = (static_cast<size_t>(index.block_cols) + 63) / 64;
  int32_t rows = kMostRows;
  while (rows > group && size_t(rows) * rows / 2 * words > kMostWords) rows /= 2;
  return std::max(rows, group);
}

std::vector<int32_t> match_rows(const BsrIndex& index, std::vector<int32_t> order, int32_t group) {
  if (group < 1 || (group & (group - 1)) != 0) fail(SPARSEK_INTERNAL, "rows are matched in groups of %d", group);
  const size_t groups = (order.size() + group - 1) / group;
  for (auto none = static_cast<int32_t>(order.size()); order.size() < groups * group; ++none) order.push_back(none);
  std::vector<int64_t> most_blocks;  // limit on the blocks of a pair, for each level
  for (int32_t size = 2; size <= group; size *= 2) {
    most_blocks.push_back(static_cast<int64_t>(kMostLonger * static_cast<double>(longest_of(index, size))));
  }
  const size_t together = rows_matched_together(index, group);
  std::vector<int32_t> matched, place(index.block_cols, -1);
  matched.reserve(order.size());
  for (size_t first = 0; first < order.size(); first += together) {
    const auto count = static_cast<int32_t>(std::min(together, order.size() - first));
    Bundles bundles = bundle_rows(index, order.data() + first, count, place);
    for (const int64_t most : most_blocks) bundles = pair_up(bundles, most);
    matched.insert(matched.end(), bundles.rows.begin(), bundles.rows.end());
  }
  return matched;
}

}  // namespace sparsek
