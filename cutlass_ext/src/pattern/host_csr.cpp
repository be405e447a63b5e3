// SPDX-License-Identifier: Apache-2.0
// Between blocks and single elements.
#include <algorithm>
#include <cstring>
#include <vector>

#include "abi/dtype.h"
#include "pattern/host.h"
#include "pattern/host_parts.h"
#include "pattern/host_writer.h"

namespace sparsek::pattern {
namespace {

// The elements of a matrix in CSR, or in COO.
struct Elements {
  const Given& csr;
  const IndexArray& rows;  // of COO; else not there

  uint64_t find_fault() const {
    if (!rows.is_there()) return pattern::find_fault(csr);
    uint64_t first = kNoFault;
    int64_t row_before = 0, col_before = -1;
    for (int64_t e = 0; e < csr.shape.nnzb; ++e) {
      const int64_t row = rows.get(e), col = csr.col_idx.get(e);
      if (row < row_before || row >= csr.shape.rows) {
        first = std::min(first, make_fault(FaultyArray::kRowPtr, e, SPARSEK_ROW_PTR_NOT_MONOTONE));
      }
      if (row != row_before) col_before = -1;
      if (col < 0 || col >= csr.shape.cols) {
        first = std::min(first, make_fault(FaultyArray::kColIdx, e, SPARSEK_COL_IDX_RANGE));
      } else if (col <= col_before) {
        const sparsek_status status = col == col_before ? SPARSEK_COL_IDX_REPEATED : SPARSEK_COL_IDX_UNSORTED;
        first = std::min(first, make_fault(FaultyArray::kColIdx, e, status));
      }
      row_before = row;
      col_before = col;
    }
    return first;
  }

  // The first element that is not above that row.
  int64_t begin(int64_t row) const {
    if (!rows.is_there()) return csr.row_ptr.get(row);
    int64_t low = 0, high = csr.shape.nnzb;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (rows.get(middle) < row) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// The entry of a column within a block row; -1 where there is none.
int64_t find_entry(const Made& made, int64_t block_row, int64_t col) {
  int64_t low = made.row_ptr.get(block_row), high = made.row_ptr.get(block_row + 1);
  const int64_t end = high;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (made.col_idx.get(middle) < col) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < end && made.col_idx.get(low) == col ? low : -1;
}

}  // namespace

void make_from_csr(const MakeJob& job) {
  const Elements elements{job.from[0], job.source_index};
  IndexWriter writer(job.to);
  const uint64_t fault = elements.find_fault();
  if (fault != kNoFault) return writer.finish_with(fault);
  const BsrShape& shape = job.to.shape;
  const int64_t bytes = dtype_bytes(job.dtype);
  const auto ends_at = [&](int64_t block_row) { return std::min((block_row + 1) * shape.block_m, shape.rows); };
  std::vector<int64_t> cols;
  for (int64_t block_row = 0; block_row < shape.block_rows; ++block_row) {
    cols.clear();
    const int64_t end = elements.begin(ends_at(block_row));
    for (int64_t e = elements.begin(block_row * shape.block_m); e < end; ++e) {
      cols.push_back(elements.csr.col_idx.get(e) / shape.block_k);
    }
    std::sort(cols.begin(), cols.end());
    cols.erase(std::unique(cols.begin(), cols.end()), cols.end());
    for (const int64_t col : cols) writer.add(col);
    writer.end_row();
  }
  writer.finish();
  if (job.to.values == nullptr) return;
  auto* const values = static_cast<char*>(job.to.values);
  const int64_t block_bytes = int64_t{shape.block_m} * shape.block_k * bytes;
  std::fill_n(values, job.to.row_ptr.get(shape.block_rows) * block_bytes, 0);
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t end = elements.begin(row + 1);
    for (int64_t e = elements.begin(row); e < end; ++e) {
      const int64_t col = elements.csr.col_idx.get(e);
      const int64_t entry = find_entry(job.to, row / shape.block_m, col / shape.block_k);
      if (entry < 0) continue;  // there was no room for it
      const int64_t at = row % shape.block_m * shape.block_k + col % shape.block_k;
      std::memcpy(values + entry * block_bytes + at * bytes, static_cast<const char*>(elements.csr.values) + e * bytes,
                  static_cast<size_t>(bytes));
    }
  }
}

void make_csr(const MakeJob& job) {
  const Given& from = job.from[0];
  const BsrShape& shape = from.shape;
  const int64_t bytes = dtype_bytes(job.dtype), block = int64_t{shape.block_m} * shape.block_k;
  IndexWriter writer(job.to);
  int64_t at = 0;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t block_row = row / shape.block_m;
    for (int64_t e = from.row_ptr.get(block_row); e < from.row_ptr.get(block_row + 1); ++e) {
      const int64_t first = from.col_idx.get(e) * shape.block_k;
      const int64_t width = std::min<int64_t>(shape.block_k, shape.cols - first);
      for (int64_t j = 0; j < width; ++j) writer.add(first + j);
      const int64_t room = std::clamp<int64_t>(job.to.shape.nnzb - at, 0, width);
      if (job.to.values != nullptr && room > 0) {
        const int64_t place = from.block(e) * block + row % shape.block_m * shape.block_k;
        std::memcpy(static_cast<char*>(job.to.values) + at * bytes,
                    static_cast<const char*>(from.values) + place * bytes, static_cast<size_t>(room * bytes));
      }
      at += width;
    }
    writer.end_row();
  }
  writer.finish();
}

}  // namespace sparsek::pattern
