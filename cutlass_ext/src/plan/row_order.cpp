// SPDX-License-Identifier: Apache-2.0
#include "plan/row_order.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "plan/pairing.h"
#include "plan/row_matching.h"

namespace sparsek {
namespace {

// The cost of an order of the block rows.
struct Cost {
  int64_t loads = 0;    // loads of block rows of B: the sum over groups of the union of their block columns
  int64_t longest = 0;  // blocks of the longest group
};

Cost cost_of(const BsrIndex& index, const std::vector<int32_t>& order, int32_t group) {
  std::vector<int32_t> seen_by(index.block_cols, -1);
  Cost cost;
  int64_t blocks = 0;  // of the group
  for (size_t i = 0; i < order.size(); ++i) {
    const int32_t now = static_cast<int32_t>(i) / group;
    if (i % group == 0) blocks = 0;
    if (order[i] >= index.block_rows) continue;
    blocks += index.row_ptr[order[i] + 1] - index.row_ptr[order[i]];
    cost.longest = std::max(cost.longest, blocks);
    for (int32_t b = index.row_ptr[order[i]]; b < index.row_ptr[order[i] + 1]; ++b) {
      cost.loads += seen_by[index.col_idx[b]] != now;
      seen_by[index.col_idx[b]] = now;
    }
  }
  return cost;
}

std::vector<int32_t> natural_order(const BsrIndex& index) {
  std::vector<int32_t> order(index.block_rows);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// `order`, sorted stably by the keys of the block rows.
template <class Key>
std::vector<int32_t> sorted_by(const std::vector<Key>& keys, std::vector<int32_t> order) {
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return keys[a] < keys[b]; });
  return order;
}

// Orders rows by the mean of their columns: recovers bands whose rows were permuted.
std::vector<int32_t> by_middle(const BsrIndex& index) {
  std::vector<double> middle(index.block_rows, 0);
  for (int32_t row = 0; row < index.block_rows; ++row) {
    const int32_t begin = index.row_ptr[row], end = index.row_ptr[row + 1];
    const double sum = std::accumulate(index.col_idx.begin() + begin, index.col_idx.begin() + end, 0.0);
    if (end > begin) middle[row] = sum / (end - begin);
  }
  return sorted_by(middle, natural_order(index));
}

// Orders rows by three min-hashes of their columns: brings families of similar rows together. The probability that two
// rows agree in one min-hash is the share of columns that they have in common (Broder, On the resemblance and
// containment of documents, 1997).
std::vector<int32_t> by_min_hash(const BsrIndex& index, const std::vector<int32_t>& order) {
  std::vector<std::array<uint32_t, kMinHashes>> minima(index.block_rows);
  for (int32_t row = 0; row < index.block_rows; ++row) {
    minima[row].fill(UINT32_MAX);
    for (int32_t b = index.row_ptr[row]; b < index.row_ptr[row + 1]; ++b) {
      uint32_t hash = static_cast<uint32_t>(index.col_idx[b]);
      for (uint32_t& minimum : minima[row]) {
        hash = next_hash(hash);
        minimum = std::min(minimum, well_mixed(hash));
      }
    }
  }
  return sorted_by(minima, order);
}

}  // namespace

bool is_wide(const BsrIndex& index) {
  constexpr int64_t kColumnsOfBlock = 8, kFewColumns = 1 << 16;
  return index.block_cols > std::max(kFewColumns, kColumnsOfBlock * index.nnzb);
}

BsrIndex narrowed(const BsrIndex& index) {
  std::vector<int32_t> columns = index.col_idx;
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  BsrIndex narrow = index;
  narrow.block_cols = static_cast<int32_t>(columns.size());
  for (int32_t& col : narrow.col_idx) {
    col = static_cast<int32_t>(std::lower_bound(columns.begin(), columns.end(), col) - columns.begin());
  }
  return narrow;
}

RowOrder order_rows(const BsrIndex& index, int32_t group) {
  RowOrder best = {natural_order(index), 0};
  const Cost natural = cost_of(index, best.rows, group);
  best.loads = natural.loads;
  if (group == 1 || group >= index.block_rows || index.nnzb == 0) return best;
  const auto consider = [&](std::vector<int32_t>&& order, const Cost& cost) {
    if (cost.loads >= best.loads || !is_better_order(cost.loads, cost.longest, natural.loads, natural.longest)) return;
    best.loads = cost.loads;
    best.rows = std::move(order);
  };
  const int32_t together = rows_matched_together(index.block_cols, group);
  if (index.block_rows > together) {  // similar rows may lie too far apart to be matched
    std::vector<int32_t> middle = by_middle(index);
    std::vector<int32_t> similar = by_min_hash(index, middle);
    for (std::vector<int32_t>* const order : {&middle, &similar}) {
      const Cost cost = cost_of(index, *order, group);
      consider(std::move(*order), cost);
    }
  }
  if (together > group) {
    MatchedRows matched = match_rows(index, best.rows, group);
    consider(std::move(matched.rows), {matched.loads, matched.longest});
  }
  for (size_t first = 0; first < best.rows.size(); first += group) {
    std::sort(best.rows.begin() + first, best.rows.begin() + std::min(first + group, best.rows.size()));
  }
  return best;
}

}  // namespace sparsek
