// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "pattern/host_elements.h"
#include "pattern/host_parts.h"
#include "pattern/host_writer.h"

namespace sparsek::pattern {
namespace {

// Whether a score is higher than another; NaN is the highest.
bool is_higher(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

template <class T>
void from_scores(const MakeJob& job) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  IndexWriter writer(job.to);
  const BsrShape& shape = job.to.shape;
  std::vector<int64_t> cols;
  for (int64_t row = 0; row < shape.block_rows; ++row) {
    const T* const scores = static_cast<const T*>(job.source) + row * job.ld;
    const auto score = [&](int64_t col) { return static_cast<double>(load(scores[col])); };
    cols.clear();
    for (int64_t col = 0; col < shape.block_cols; ++col) {
      const double value = score(col);
      if (job.what == Make::kTopScores ? value != kNever : !(value <= job.threshold)) cols.push_back(col);
    }
    if (job.what == Make::kTopScores && static_cast<int64_t>(cols.size()) > job.count) {
      const auto end = cols.begin() + job.count;
      std::nth_element(cols.begin(), end, cols.end(), [&](int64_t a, int64_t b) {
        const double of_a = score(a), of_b = score(b);
        return is_higher(of_a, of_b) || (!is_higher(of_b, of_a) && a < b);
      });
      cols.erase(end, cols.end());
      std::sort(cols.begin(), cols.end());
    }
    for (const int64_t col : cols) writer.add(col);
    writer.end_row();
  }
  writer.finish();
}

}  // namespace

void make_from_scores(const MakeJob& job) {
  with_element(job.dtype, [&](auto* element) { from_scores<std::remove_pointer_t<decltype(element)>>(job); });
}

void make_from_columns(const MakeJob& job) {
  IndexWriter writer(job.to);
  const BsrShape& shape = job.to.shape;
  std::vector<int64_t> cols;
  for (int64_t row = 0; row < shape.block_rows; ++row) {
    cols.clear();
    for (int64_t i = 0; i < job.count; ++i) {
      const int64_t at = row * job.ld + i, col = job.source_index.get(at);
      if (col >= shape.block_cols) {
        return writer.finish_with(make_fault(FaultyArray::kColIdx, at, SPARSEK_COL_IDX_RANGE));
      }
      if (col >= 0) cols.push_back(col);
    }
    std::sort(cols.begin(), cols.end());
    cols.erase(std::unique(cols.begin(), cols.end()), cols.end());
    for (const int64_t col : cols) writer.add(col);
    writer.end_row();
  }
  writer.finish();
}

}  // namespace sparsek::pattern
