// SPDX-License-Identifier: Apache-2.0
#include "plan/pattern_stats.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace sparsek {
namespace {

// The number of block rows in a group of `rows` rows.
int32_t together(const BsrShape& shape, int32_t rows) { return std::max(1, rows / shape.block_m); }

double density_of(const BsrShape& shape) {
  const double all = static_cast<double>(shape.block_rows) * shape.block_cols;
  return all > 0 ? static_cast<double>(shape.nnzb) / all : 0;
}

GroupLoads group_loads(const BsrIndex& index, int32_t group) {
  GroupLoads out;
  std::vector<int32_t> seen_by(index.block_cols, -1);
  for (int32_t first = 0; first < index.block_rows; first += group) {
    const int32_t end = std::min(first + group, index.block_rows);
    int64_t loads = 0;
    for (int32_t b = index.row_ptr[first]; b < index.row_ptr[end]; ++b) {
      int32_t& seen = seen_by[index.col_idx[b]];
      loads += seen != first;
      seen = first;
    }
    out.loads += loads;
    out.longest = std::max(out.longest, loads);
  }
  return out;
}

// A block column is in the union of g rows unless it is in none: 1 - (1 - d)^g of all.
GroupLoads expected_loads(const BsrShape& shape, int32_t group, const PatternStats& stats) {
  const double share = 1 - std::pow(1 - stats.density, group);
  const int64_t groups = (shape.block_rows + group - 1) / group;
  GroupLoads out;
  out.longest = std::max(stats.longest_row, static_cast<int64_t>(std::ceil(share * shape.block_cols)));
  out.loads = std::min(shape.nnzb, static_cast<int64_t>(share * shape.block_cols * static_cast<double>(groups)));
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
  const int32_t few = together(index, 64), many = together(index, 128);
  stats.rows64 = group_loads(index, few);
  stats.rows128 = many == few ? stats.rows64 : group_loads(index, many);
  // Like the planner, which reorders block rows only where a slot is a whole block row.
  const bool ordered = index.block_m >= 8 && 128 % index.block_m == 0;
  stats.ordered_loads = ordered ? orders.of(many).loads : stats.rows128.loads;
  return stats;
}

PatternStats expected_stats(const BsrShape& shape, int64_t longest_row) {
  PatternStats stats;
  stats.density = density_of(shape);
  stats.longest_row = longest_row;
  stats.rows64 = expected_loads(shape, together(shape, 64), stats);
  stats.rows128 = expected_loads(shape, together(shape, 128), stats);
  stats.ordered_loads = stats.rows128.loads;
  return stats;
}

}  // namespace sparsek
