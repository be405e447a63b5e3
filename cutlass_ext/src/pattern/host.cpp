// SPDX-License-Identifier: Apache-2.0
#include "pattern/host.h"
#include "cpu/floating_point.h"

#include <vector>

#include "pattern/host_parts.h"
#include "pattern/host_writer.h"

namespace sparsek::pattern {
namespace {

void make_from_mask(const MakeJob& job) {
  IndexWriter writer(job.to);
  const auto* const mask = static_cast<const uint8_t*>(job.source);
  for (int64_t row = 0; row < job.to.shape.block_rows; ++row) {
    for (int64_t col = 0; col < job.to.shape.block_cols; ++col) {
      const int64_t at = row * job.ld + col;
      if (job.bits ? mask[at / 8] >> (at % 8) & 1 : mask[at]) writer.add(col);
    }
    writer.end_row();
  }
  writer.finish();
}

void make_from_dense(const MakeJob& job) {
  norm_dense_blocks(job);
  MakeJob by_norm = job;
  by_norm.source = job.norms;
  by_norm.ld = job.to.shape.block_cols;
  by_norm.dtype = job.dtype == SPARSEK_FP64 ? SPARSEK_FP64 : SPARSEK_FP32;
  by_norm.what = Make::kScores;
  by_norm.to.values = nullptr;
  make_from_scores(by_norm);
  if (job.to.values != nullptr) {
    gather_blocks(as_given(job.to), job.dtype, job.source, job.ld, job.order, job.to.values);
  }
}

void make_from_counts(const MakeJob& job) {
  IndexWriter writer(job.to);
  const BsrShape& shape = job.to.shape;
  const int64_t width = shape.block_cols / job.count;
  for (int64_t i = 0; i < job.count; ++i) {
    if (job.source_index.get(i) >= 0) continue;
    for (int64_t bin = 0; bin <= job.count; ++bin) job.bins.set(bin, 0);
    writer.finish_with(make_fault(FaultyArray::kRowPtr, i, SPARSEK_BAD_SIZE));
    return;
  }
  int64_t rows = 0, fitting = 0;
  for (int64_t i = 0; i < job.count; ++i) {
    job.bins.set(i, bin_of(rows, job.bins.type));
    const int64_t end = rows + rows_of_tokens(job.source_index.get(i), shape.block_m);
    for (; fitting < shape.block_rows && fitting < end; ++fitting) {
      for (int64_t col = 0; col < width; ++col) writer.add(i * width + col);
      writer.end_row();
    }
    rows = end;
  }
  job.bins.set(job.count, bin_of(rows, job.bins.type));
  for (; fitting < shape.block_rows; ++fitting) writer.end_row();
  writer.finish();
  if (job.to.blocks != nullptr) *job.to.blocks = blocks_of_rows(rows, width);
  if (rows > shape.block_rows) *job.to.fault = SPARSEK_OVER_CAPACITY;
}

void make_block_diagonal(const MakeJob& job) {
  const Made& to = job.to;
  int64_t begin = 0, row_begin = 0, col_begin = 0, value_begin = 0;
  to.row_ptr.set(0, 0);
  for (const Given& member : job.from) {
    const int64_t blocks = member.shape.block_rows > 0 ? blocks_of(member) : 0;
    for (int64_t row = 1; row <= member.shape.block_rows; ++row) {
      to.row_ptr.set(row_begin + row, joined_row(member, row, begin));
    }
    for (int64_t e = 0; e < blocks; ++e) {
      to.col_idx.set(begin + e, joined_column(member, e, col_begin));
      if (to.block_idx.is_there()) to.block_idx.set(begin + e, joined_block(member, e, value_begin));
    }
    begin += blocks;
    row_begin += member.shape.block_rows;
    col_begin += member.shape.block_cols;
    value_begin += member.shape.nnzb;
  }
  if (to.blocks != nullptr) *to.blocks = begin;
  *to.fault = 0;
}

void make_transposed(const MakeJob& job) {
  IndexWriter writer(job.to);
  const Given& from = job.from[0];
  const uint64_t fault = find_fault(from);
  if (fault != kNoFault) return writer.finish_with(fault);
  struct Entry {
    int64_t row, block;
  };
  // Sorted by counting, which keeps the order of the rows within each column.
  std::vector<int64_t> next(static_cast<size_t>(from.shape.block_cols) + 1);
  std::vector<Entry> sorted(static_cast<size_t>(entries_of(from)));
  for (size_t e = 0; e < sorted.size(); ++e) ++next[static_cast<size_t>(from.col_idx.get(static_cast<int64_t>(e))) + 1];
  for (size_t col = 1; col < next.size(); ++col) next[col] += next[col - 1];
  std::vector<int64_t> ends(next.begin() + 1, next.end());
  for (int64_t row = 0; row < from.shape.block_rows; ++row) {
    for (int64_t e = from.row_ptr.get(row); e < from.row_ptr.get(row + 1); ++e) {
      sorted[static_cast<size_t>(next[static_cast<size_t>(from.col_idx.get(e))]++)] = {row, from.block(e)};
    }
  }
  size_t at = 0;
  for (const int64_t end : ends) {
    for (; at < static_cast<size_t>(end); ++at) writer.add(sorted[at].row, sorted[at].block);
    writer.end_row();
  }
  writer.finish();
}

}  // namespace

void make_on_host(const MakeJob& job) {
  const cpu::DefaultFloatingPoint settings;
  switch (job.what) {
    case Make::kMask:
      return make_from_mask(job);
    case Make::kScores:
    case Make::kTopScores:
    case Make::kBlocks:
    case Make::kTopBlocks:
      return make_from_scores(job);
    case Make::kTopColumns:
      return make_from_columns(job);
    case Make::kDense:
      return make_from_dense(job);
    case Make::kCsr:
      return make_from_csr(job);
    case Make::kCounts:
      return make_from_counts(job);
    case Make::kBlockDiagonal:
      return make_block_diagonal(job);
    case Make::kTransposed:
      return make_transposed(job);
    case Make::kToCsr:
      return make_csr(job);
  }
}

uint64_t find_fault(const Given& index) {
  const BsrShape& shape = index.shape;
  uint64_t first = kNoFault;
  const auto found = [&](FaultyArray array, int64_t place, sparsek_status status) {
    first = std::min(first, make_fault(array, place, status));
  };
  std::vector<bool> seen;
  for (int64_t row = 0; row <= shape.block_rows; ++row) {
    const int64_t begin = index.row_ptr.get(row);
    if (row == 0 && begin != 0) found(FaultyArray::kRowPtr, 0, SPARSEK_ROW_PTR_START);
    if (row == shape.block_rows) {
      if (index.bounded ? begin > shape.nnzb : begin != shape.nnzb) {
        found(FaultyArray::kRowPtr, row, SPARSEK_ROW_PTR_END);
      }
      break;
    }
    const int64_t end = index.row_ptr.get(row + 1);
    if (end < begin) found(FaultyArray::kRowPtr, row + 1, SPARSEK_ROW_PTR_NOT_MONOTONE);
    if (begin < 0 || end < begin || end > shape.nnzb) continue;
    if (index.unsorted) seen.assign(static_cast<size_t>(shape.block_cols), false);
    int64_t before = -1;
    for (int64_t e = begin; e < end; ++e) {
      const int64_t col = index.col_idx.get(e);
      const int64_t block = index.block(e);
      if (block < 0 || block >= shape.nnzb) found(FaultyArray::kBlockIdx, e, SPARSEK_BLOCK_IDX_RANGE);
      if (col < 0 || col >= shape.block_cols) {
        found(FaultyArray::kColIdx, e, SPARSEK_COL_IDX_RANGE);
      } else if (index.unsorted) {
        if (seen[static_cast<size_t>(col)]) found(FaultyArray::kColIdx, e, SPARSEK_COL_IDX_REPEATED);
        seen[static_cast<size_t>(col)] = true;
      } else if (col <= before) {
        found(FaultyArray::kColIdx, e, col == before ? SPARSEK_COL_IDX_REPEATED : SPARSEK_COL_IDX_UNSORTED);
      }
      before = col;
    }
  }
  return first;
}

}  // namespace sparsek::pattern
