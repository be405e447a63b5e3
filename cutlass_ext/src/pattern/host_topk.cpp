// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "abi/dtype.h"
#include "pattern/host_elements.h"
#include "pattern/host_parts.h"
#include "pattern/host_writer.h"

namespace sparsek::pattern {
namespace {

// Whether a score is higher than another; NaN is the highest.
bool is_higher(double a, double b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

// The rows of scores: of a place for each block, or of the entries of a matrix.
template <class T>
class Scores {
 public:
  explicit Scores(const MakeJob& job) : job_(job), from_(job.from.empty() ? nullptr : &job.from[0]) {}

  int64_t length(int64_t row) const {
    return from_ == nullptr ? job_.to.shape.block_cols : from_->row_ptr.get(row + 1) - from_->row_ptr.get(row);
  }
  double score(int64_t row, int64_t i) const {
    return static_cast<double>(load(static_cast<const T*>(job_.source)[place(row, i)]));
  }
  void add(int64_t row, int64_t i, IndexWriter& writer) const {
    if (from_ == nullptr) return writer.add(i);
    const int64_t entry = place(row, i);
    writer.add(from_->col_idx.get(entry), from_->block(entry));
  }

 private:
  int64_t place(int64_t row, int64_t i) const {
    return from_ == nullptr ? row * job_.ld + i : from_->row_ptr.get(row) + i;
  }

  const MakeJob& job_;
  const Given* const from_;
};

template <class T>
void from_scores(const MakeJob& job) {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const bool takes_highest = job.what == Make::kTopScores || job.what == Make::kTopBlocks;
  IndexWriter writer(job.to);
  const Scores<T> scores(job);
  std::vector<int64_t> taken;
  for (int64_t row = 0; row < job.to.shape.block_rows; ++row) {
    taken.clear();
    for (int64_t i = 0; i < scores.length(row); ++i) {
      const double value = scores.score(row, i);
      if (takes_highest ? value != kNever : !(value <= job.threshold)) taken.push_back(i);
    }
    if (takes_highest && static_cast<int64_t>(taken.size()) > job.count) {
      const auto end = taken.begin() + job.count;
      std::nth_element(taken.begin(), end, taken.end(), [&](int64_t a, int64_t b) {
        const double of_a = scores.score(row, a), of_b = scores.score(row, b);
        return is_higher(of_a, of_b) || (!is_higher(of_b, of_a) && a < b);
      });
      taken.erase(end, taken.end());
      std::sort(taken.begin(), taken.end());
    }
    for (const int64_t i : taken) scores.add(row, i, writer);
    writer.end_row();
  }
  writer.finish();
}

// The values of entries whose blocks are named.
void copy_blocks(const MakeJob& job) {
  const Made& to = job.to;
  const int64_t bytes = int64_t{to.shape.block_m} * to.shape.block_k * dtype_bytes(job.values_dtype);
  for (int64_t entry = 0; entry < to.row_ptr.get(to.shape.block_rows); ++entry) {
    std::memcpy(static_cast<char*>(to.values) + entry * bytes,
                static_cast<const char*>(job.from[0].values) + to.block_idx.get(entry) * bytes,
                static_cast<size_t>(bytes));
  }
}

}  // namespace

void make_from_scores(const MakeJob& job) {
  with_element(job.dtype, [&](auto* element) { from_scores<std::remove_pointer_t<decltype(element)>>(job); });
  if (job.to.values != nullptr) copy_blocks(job);
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
