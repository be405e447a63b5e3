// SPDX-License-Identifier: Apache-2.0
#include "plan/row_matching.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace sparsek {
namespace {

// The rows that are matched with each other: at most so many, and fewer where a row has many block columns.
constexpr int32_t kMostRows = 512;
constexpr int64_t kMostWords = int64_t{1} << 21;  // compared at the first level

// One or more block rows that stay together.
struct Bundle {
  std::vector<int32_t> rows;
  std::vector<uint64_t> columns;  // a bit for each block column that one of them has
  int64_t blocks = 0;
};

// in_common[i, j]: the block columns that bundles i and j both have.
[[gnu::always_inline]] inline void count_common(const std::vector<Bundle>& bundles, std::vector<int32_t>& in_common) {
  const size_t n = bundles.size();
  for (size_t i = 0; i < n; ++i) {
    const std::vector<uint64_t>& a = bundles[i].columns;
    for (size_t j = 0; j < i; ++j) {
      const std::vector<uint64_t>& b = bundles[j].columns;
      int count = 0;
      for (size_t w = 0; w < a.size(); ++w) count += __builtin_popcountll(a[w] & b[w]);
      in_common[i * n + j] = in_common[j * n + i] = count;
    }
  }
}

#ifdef __x86_64__
// The instruction is not part of the least that x86-64 has, and without it counting takes several times as long.
[[gnu::target("popcnt")]] void count_common_by_popcnt(const std::vector<Bundle>& bundles,
                                                      std::vector<int32_t>& in_common) {
  count_common(bundles, in_common);
}
#endif

std::vector<int32_t> count_common(const std::vector<Bundle>& bundles) {
  std::vector<int32_t> in_common(bundles.size() * bundles.size(), 0);
#ifdef __x86_64__
  if (__builtin_cpu_supports("popcnt")) {
    count_common_by_popcnt(bundles, in_common);
    return in_common;
  }
#endif
  count_common(bundles, in_common);
  return in_common;
}

Bundle unite(Bundle a, Bundle b) {
  a.rows.insert(a.rows.end(), b.rows.begin(), b.rows.end());
  for (size_t w = 0; w < a.columns.size(); ++w) a.columns[w] |= b.columns[w];
  a.blocks += b.blocks;
  return a;
}

// Pairs an even number of bundles up. Each looks for the one with which it has most in common; two that look for each
// other are a pair. Of several with as much in common, that whose number differs in the lowest bits comes first: no
// two are as near to the same one, so that there is a pair in each round, and neighbours stay neighbours where nothing
// speaks against it.
std::vector<Bundle> pair_up(std::vector<Bundle> bundles, int64_t most_blocks) {
  const auto n = static_cast<int32_t>(bundles.size());
  const std::vector<int32_t> in_common = count_common(bundles);
  constexpr int32_t kNobody = -1;
  std::vector<int32_t> left(n), partner(n, kNobody), favourite(n, kNobody);
  std::iota(left.begin(), left.end(), 0);
  const auto find_favourite = [&](int32_t i) {
    const int32_t* const with_i = in_common.data() + static_cast<size_t>(i) * n;
    int32_t best = kNobody;
    for (const int32_t j : left) {
      if (j == i || bundles[i].blocks + bundles[j].blocks > most_blocks) continue;
      if (best == kNobody || with_i[j] > with_i[best] || (with_i[j] == with_i[best] && (i ^ j) < (i ^ best))) best = j;
    }
    return best;
  };
  for (bool first = true, found = true; found; first = false) {
    found = false;
    for (const int32_t i : left) {
      if (first || (favourite[i] != kNobody && partner[favourite[i]] != kNobody)) favourite[i] = find_favourite(i);
    }
    for (const int32_t i : left) {
      if (favourite[i] == kNobody || favourite[favourite[i]] != i) continue;
      partner[i] = favourite[i];
      found = true;
    }
    left.erase(std::remove_if(left.begin(), left.end(), [&](int32_t i) { return partner[i] != kNobody; }), left.end());
  }
  // Those too long for any that is left: the longest with the shortest.
  std::stable_sort(left.begin(), left.end(), [&](int32_t a, int32_t b) { return bundles[a].blocks > bundles[b].blocks; });
  for (size_t k = 0; k < left.size() / 2; ++k) {
    partner[left[k]] = left[left.size() - 1 - k];
    partner[left[left.size() - 1 - k]] = left[k];
  }

  std::vector<Bundle> pairs;
  pairs.reserve(n / 2);
  for (int32_t i = 0; i < n; ++i) {
    if (i < partner[i]) pairs.push_back(unite(std::move(bundles[i]), std::move(bundles[partner[i]])));
  }
  return pairs;
}

int64_t blocks_of(const BsrIndex& index, int64_t row) {
  return row < index.block_rows ? index.row_ptr[row + 1] - index.row_ptr[row] : 0;
}

// The most blocks that `size` neighbours have.
int64_t longest_of(const BsrIndex& index, int32_t size) {
  int64_t longest = 0;
  for (int64_t first = 0; first < index.block_rows; first += size) {
    const int64_t end = std::min<int64_t>(first + size, index.block_rows);
    longest = std::max<int64_t>(longest, index.row_ptr[end] - index.row_ptr[first]);
  }
  return longest;
}

}  // namespace

int32_t rows_matched_together(const BsrIndex& index, int32_t group) {
  const int64_t words = index.block_cols / 64 + 1;
  int32_t rows = kMostRows;
  while (rows > group && int64_t{rows} * rows / 2 * words > kMostWords) rows /= 2;
  return std::max(rows, group);
}

std::vector<int32_t> match_rows(const BsrIndex& index, std::vector<int32_t> order, int32_t group) {
  const size_t groups = (order.size() + group - 1) / group;
  for (auto none = static_cast<int32_t>(order.size()); order.size() < groups * group; ++none) order.push_back(none);
  std::vector<int64_t> most_blocks;  // of pairs at each level
  for (int32_t size = 2; size <= group; size *= 2) {
    most_blocks.push_back(static_cast<int64_t>(kMostLonger * static_cast<double>(longest_of(index, size))));
  }
  const size_t together = rows_matched_together(index, group);
  std::vector<int32_t> matched;
  matched.reserve(order.size());
  for (size_t first = 0; first < order.size(); first += together) {
    std::vector<Bundle> bundles;
    for (size_t i = first; i < std::min(first + together, order.size()); ++i) {
      Bundle one;
      one.rows = {order[i]};
      one.columns.resize(index.block_cols / 64 + 1);
      one.blocks = blocks_of(index, order[i]);
      for (int64_t b = 0; b < one.blocks; ++b) {
        const int32_t col = index.col_idx[index.row_ptr[order[i]] + b];
        one.columns[col / 64] |= uint64_t{1} << col % 64;
      }
      bundles.push_back(std::move(one));
    }
    for (const int64_t most : most_blocks) bundles = pair_up(std::move(bundles), most);
    for (const Bundle& bundle : bundles) matched.insert(matched.end(), bundle.rows.begin(), bundle.rows.end());
  }
  return matched;
}

}  // namespace sparsek
