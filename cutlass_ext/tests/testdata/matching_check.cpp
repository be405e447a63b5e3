// SPDX-License-Identifier: Apache-2.0
// Block rows that are put together: each comes once, whatever their number; pairs are those of the plainest greedy
// matching; and the figures that kernels are chosen by do not promise an order that no plan has.
// Prints the first difference and exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "abi/error.h"
#include "plan/pattern_stats.h"
#include "plan/plan.h"
#include "plan/row_matching.h"
#include "plan/row_order.h"
#include "random_index.h"

namespace {

using sparsek::BsrIndex;

#define REQUIRE(condition)                                                                                     \
  do {                                                                                                         \
    if (!(condition)) {                                                                                        \
      std::printf("line %d: %s: %d block rows, %d columns, %lld blocks, groups of %d\n", __LINE__, #condition, \
                  index.block_rows, index.block_cols, static_cast<long long>(index.nnzb), group);              \
      std::exit(1);                                                                                            \
    }                                                                                                          \
  } while (0)

BsrIndex index_of(int32_t block_rows, int32_t block_cols, int32_t block_m, int percent) {
  BsrIndex index;
  index.block_m = block_m;
  index.block_k = 64;
  index.block_rows = block_rows;
  index.block_cols = block_cols;
  index.rows = int64_t{block_m} * block_rows;
  index.cols = int64_t{64} * block_cols;
  index.row_ptr.push_back(0);
  for (int32_t row = 0; row < block_rows; ++row) {
    const int of_row = draw(0, 9) == 0 ? 100 : percent;
    for (int32_t col = 0; col < block_cols; ++col) {
      if (draw(1, 100) <= of_row) index.col_idx.push_back(col);
    }
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  index.nnzb = static_cast<int64_t>(index.col_idx.size());
  return index;
}

std::vector<int32_t> natural(const BsrIndex& index) {
  std::vector<int32_t> order(index.block_rows);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

int64_t blocks(const BsrIndex& index, int32_t row) {
  return row < index.block_rows ? index.row_ptr[row + 1] - index.row_ptr[row] : 0;
}

int32_t common(const BsrIndex& index, int32_t a, int32_t b) {
  if (a >= index.block_rows || b >= index.block_rows) return 0;
  std::vector<int32_t> both;
  const auto cols = index.col_idx.begin();
  std::set_intersection(cols + index.row_ptr[a], cols + index.row_ptr[a + 1], cols + index.row_ptr[b],
                        cols + index.row_ptr[b + 1], std::back_inserter(both));
  return static_cast<int32_t>(both.size());
}

void check_each_once(const BsrIndex& index, int32_t group) {
  const sparsek::MatchedRows matched = sparsek::match_rows(index, natural(index), group);
  std::vector<int32_t> rows = matched.rows;
  REQUIRE(rows == sparsek::match_rows(index, natural(index), group).rows);
  REQUIRE(static_cast<int32_t>(rows.size()) == (index.block_rows + group - 1) / group * group);
  int64_t loads = 0, longest = 0;
  for (size_t first = 0; first < rows.size(); first += group) {
    std::vector<int32_t> columns;
    for (size_t i = first; i < first + group; ++i) {
      if (rows[i] >= index.block_rows) continue;
      columns.insert(columns.end(), index.col_idx.begin() + index.row_ptr[rows[i]],
                     index.col_idx.begin() + index.row_ptr[rows[i] + 1]);
    }
    longest = std::max<int64_t>(longest, columns.size());
    std::sort(columns.begin(), columns.end());
    loads += std::unique(columns.begin(), columns.end()) - columns.begin();
  }
  REQUIRE(matched.loads == loads && matched.longest == longest);
  std::sort(rows.begin(), rows.end());
  for (size_t i = 0; i < rows.size(); ++i) REQUIRE(rows[i] == static_cast<int32_t>(i));
}

// Of all pairs that are left and not too long, the one with the most columns in common, the nearest of several; what is
// left in the end, the longest with the shortest.
void check_pairs(const BsrIndex& index) {
  constexpr int32_t group = 2;
  int64_t longest = 0;
  for (int32_t row = 0; row < index.block_rows; row += 2) {
    longest = std::max(longest, blocks(index, row) + blocks(index, row + 1));
  }
  const auto limit = static_cast<int64_t>(1.1 * static_cast<double>(longest));
  std::vector<int32_t> left(static_cast<size_t>((index.block_rows + 1) / 2 * 2));
  std::iota(left.begin(), left.end(), 0);
  std::vector<std::pair<int32_t, int32_t>> want, got;
  for (;;) {
    std::pair<int32_t, int32_t> best = {-1, -1}, merit = {-1, 0};
    for (const int32_t a : left) {
      for (const int32_t b : left) {
        if (a >= b || blocks(index, a) + blocks(index, b) > limit) continue;
        const std::pair<int32_t, int32_t> of_both = {common(index, a, b), -(a ^ b)};
        if (of_both > merit) best = {a, b}, merit = of_both;
      }
    }
    if (best.first < 0) break;
    want.push_back(best);
    left.erase(std::remove_if(left.begin(), left.end(), [&](int32_t i) { return i == best.first || i == best.second; }),
               left.end());
  }
  std::stable_sort(left.begin(), left.end(), [&](int32_t a, int32_t b) { return blocks(index, a) > blocks(index, b); });
  for (size_t k = 0; k < left.size() / 2; ++k) want.push_back(std::minmax(left[k], left[left.size() - 1 - k]));

  const std::vector<int32_t> rows = sparsek::match_rows(index, natural(index), group).rows;
  for (size_t i = 0; i < rows.size(); i += 2) got.push_back(std::minmax(rows[i], rows[i + 1]));
  std::sort(want.begin(), want.end());
  std::sort(got.begin(), got.end());
  REQUIRE(want == got);
}

// Four long rows, too long for each other, beside short ones that have all in common among themselves.
BsrIndex long_and_short() {
  BsrIndex index = index_of(0, 64, 64, 0);
  index.block_rows = 8;
  index.rows = int64_t{64} * index.block_rows;
  for (int32_t row = 0; row < index.block_rows; ++row) {
    const int32_t begin = row % 2 == 0 ? 0 : 40, count = row % 2 == 0 ? 10 + row : 2;
    for (int32_t col = begin; col < begin + count; ++col) index.col_idx.push_back(col);
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  index.nnzb = static_cast<int64_t>(index.col_idx.size());
  return index;
}

// Block rows of 24 share no tile with others that are not their neighbours.
void check_stats(const BsrIndex& index) {
  const int32_t group = 128 / index.block_m;
  sparsek::RowOrders orders(index);
  const sparsek::PatternStats stats = pattern_stats(orders);
  REQUIRE(stats.ordered_loads <= stats.rows128.loads);
  if (128 % index.block_m != 0 || index.block_m < 8) REQUIRE(stats.ordered_loads == stats.rows128.loads);
  if (128 % index.block_m == 0 && group > 1) REQUIRE(stats.ordered_loads == orders.of(group).loads);
  // The row groups are those of a plan that keeps the rows in their order.
  for (const auto& [height, loads] : {std::pair{64, stats.rows64}, std::pair{128, stats.rows128}}) {
    sparsek::PlanShape shape;
    shape.tile_m = height;
    shape.tile_n = 64;
    shape.n = 64;
    const sparsek::Plan plan = sparsek::make_plan(orders, shape);
    int64_t sum = 0, longest = 0;
    for (const sparsek::WorkTile& tile : plan.tiles) {
      sum += tile.entry_count;
      longest = std::max<int64_t>(longest, tile.entry_count);
    }
    REQUIRE(loads.loads == sum && loads.longest == longest);
  }
}

// Few blocks in many columns: done in a blink, where each row was as long as all columns it took minutes.
void check_wide() {
  constexpr int32_t group = 16, kBlocks = 8;
  BsrIndex index;
  index.block_m = index.block_k = 8;
  index.block_rows = 1 << 16;
  index.block_cols = 1 << 22;
  index.row_ptr.push_back(0);
  for (int32_t row = 0; row < index.block_rows; ++row) {
    std::vector<int32_t> cols;
    for (int i = 0; i < kBlocks; ++i) cols.push_back(draw(0, index.block_cols - 1));
    std::sort(cols.begin(), cols.end());
    cols.erase(std::unique(cols.begin(), cols.end()), cols.end());
    index.col_idx.insert(index.col_idx.end(), cols.begin(), cols.end());
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  index.nnzb = static_cast<int64_t>(index.col_idx.size());
  check_each_once(index, group);
}

}  // namespace

int main() {
  for (const int32_t block_cols : {0, 1, 63, 64, 65, 300}) {
    for (const int32_t group : {1, 2, 4, 8, 16}) {
      for (const int32_t rows : {0, 1, group - 1, group, group + 1, 3 * group, 77, 700}) {
        check_each_once(index_of(rows, block_cols, 8, 15), group);
      }
    }
  }
  for (int round = 0; round < 150; ++round) check_pairs(index_of(draw(1, 40), draw(1, 70), 64, draw(0, 60)));
  check_pairs(long_and_short());
  for (const int32_t block_m : {1, 4, 8, 10, 16, 20, 24, 32, 40, 48, 64, 96, 128, 256}) {
    for (const int32_t rows : {1, 35, 64}) check_stats(index_of(rows, 50, block_m, 20));
  }
  check_wide();
  try {
    sparsek::match_rows(index_of(6, 4, 40, 50), {0, 1, 2, 3, 4, 5}, 3);
    std::printf("groups of 3 were taken\n");
    return 1;
  } catch (const sparsek::Error&) {
  }
}
