// SPDX-License-Identifier: Apache-2.0
#include "plan/pattern_stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace sparsek {
namespace {

double density_of(const BsrShape& shape) {
  const double all = static_cast<double>(shape.block_rows) * shape.block_cols;
  return all > 0 ? static_cast<double>(shape.nnzb) / all : 0;
}

// The block rows that a row group of `height` rows touches: [first, end).
struct RowRange {
  int32_t first, end;
};

RowRange rows_of_group(const BsrShape& shape, int64_t group, int32_t height) {
  const int64_t last = std::min((group + 1) * height, shape.rows) - 1;
  return {static_cast<int32_t>(group * height / shape.block_m), static_cast<int32_t>(last / shape.block_m) + 1};
}

int64_t count_groups(const BsrShape& shape, int32_t height) { return (shape.rows + height - 1) / height; }

GroupLoads group_loads(const BsrIndex& index, int32_t height) {
  GroupLoads out;
  std::vector<int64_t> seen_by(index.block_cols, -1);
  const int64_t groups = count_groups(index, height);
  for (int64_t group = 0; group < groups; ++group) {
    const RowRange rows = rows_of_group(index, group, height);
    const int32_t begin = index.row_ptr[rows.first], end = index.row_ptr[rows.end];
    int64_t loads = end - begin;
    if (rows.end - rows.first > 1) {
      loads = 0;
      for (int32_t b = begin; b < end; ++b) {
        int64_t& seen = seen_by[index.col_idx[b]];
        loads += seen != group;
        seen = group;
      }
    }
    out.loads += loads;
    out.longest = std::max(out.longest, loads);
  }
  return out;
}

// A block column is in the union of r rows unless it is in none: 1 - (1 - d)^r of all.
GroupLoads expected_loads(const BsrShape& shape, int32_t height, const PatternStats& stats) {
  const int64_t groups = count_groups(shape, height);
  if (groups == 0) return {};
  // After so many groups, a block row begins with a group again.
  const int64_t period = std::min(groups, int64_t{shape.block_m} / std::gcd(shape.block_m, height));
  double share = 0, most = 0;
  for (int64_t group = 0; group < period; ++group) {
    const RowRange rows = rows_of_group(shape, group, height);
    const double of_all = 1 - std::pow(1 - stats.density, rows.end - rows.first);
    share += of_all / static_cast<double>(period);
    most = std::max(most, of_all);
  }
  GroupLoads out;
  out.longest = std::max(stats.longest_row, static_cast<int64_t>(std::ceil(most * shape.block_cols)));
  out.loads = static_cast<int64_t>(std::ceil(share * shape.block_cols * static_cast<double>(groups)));
  return out;
}

}  // namespace

PatternStats pattern_stats(RowOrders& orders) {
  const BsrIndex& index = orders.index();
  PatternStats stats;
  stats.density = density_of(index);
  double squares = 0;
  for (int32_t row = 0; row < index.block_rows; ++row) {
    const int64_t length = index.row_ptr[row + 1] - index.row_ptr[row];
    stats.longest_row = std::max(stats.longest_row, length);
    squares += static_cast<double>(length) * static_cast<double>(length);
  }
  if (index.nnzb > 0) {
    const double mean = static_cast<double>(index.nnzb) / index.block_rows;
    stats.row_spread = std::sqrt(std::max(0.0, squares / index.block_rows - mean * mean)) / mean;
  }
  stats.rows64 = group_loads(orders.narrow(), 64);
  stats.rows128 = group_loads(orders.narrow(), 128);
  // Like the planner, which reorders block rows only where a slot is a whole block row.
  const bool ordered = index.block_m >= 8 && 128 % index.block_m == 0;
  stats.ordered_loads = ordered ? orders.of(128 / index.block_m).loads : stats.rows128.loads;
  return stats;
}

PatternStats expected_stats(const BsrShape& shape, int64_t longest_row) {
  PatternStats stats;
  stats.density = density_of(shape);
  stats.longest_row = longest_row;
  stats.rows64 = expected_loads(shape, 64, stats);
  stats.rows128 = expected_loads(shape, 128, stats);
  stats.ordered_loads = stats.rows128.loads;
  return stats;
}

}  // namespace sparsek
