// SPDX-License-Identifier: Apache-2.0
// Where a team of lanes of the few_columns family is in the rows of its chunk, if its lanes have 16 bytes of a row of B
// each.
#pragma once

#include <climits>

#include "cuda/chunk_args.h"
#include "cuda/few_columns_store.cuh"

namespace sparsek::cuda::few_columns {

// The columns of a lane, one of kLanes that have a row of B in a panel, and the rows of C of a chunk, one after the
// other. kPlain: C is but alpha times the sums, and aligned for the columns of a lane, which are a divisor of N.
template <class Element, int kLanes, bool kPlain>
struct LineRows {
  using ElementB = TypeOfB<Element>;
  static constexpr int kColumns = kBytesOfLane / int(sizeof(ElementB));

  __device__ LineRows(const LaunchArgs& args, const RowChunks& rows, const RowChunk& chunk, int at, int panel)
      : args_(args), rows_(rows), alpha_(alpha_of(args.epilogue)), at_(at), panel_(panel) {
    columns = int(max(int64_t(0), min(int64_t(kColumns), args.n - column())));
    row_ = chunk.row_begin;
    beyond_ = chunk.row_end;
    end_ = chunk.entry_end < 0 ? ~chunk.entry_end : chunk.entry_end;
    if (row_ < beyond_) {
      begun_ = __ldg(rows.row_ptr + row_) < chunk.entry_begin;
      next_end_ = __ldg(rows.row_ptr + row_ + 1);
    }
    read_end();
  }

  // Of C, the lane's first.
  __device__ int64_t column() const { return int64_t(panel_) * rows_.lanes.columns + threadIdx.x % kLanes * kColumns; }

  // Stores the rows that end with the entries before `entry`.
  __device__ void add_up_to(int entry, Sum<Element> (&sums)[kColumns]) {
#pragma unroll 1
    while (row_end <= entry) {
      if (columns > 0) store(sums);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) sums[j] = 0;
      go_on();
    }
  }

  // To the next row.
  __device__ void go_on() {
    begun_ = false;
    ++row_;
    read_end();
  }

  // Of the row, to C, or as a part of the row's sums where the row lies in other chunks too.
  __device__ void store(const Sum<Element> (&sums)[kColumns]) {
    if (begun_ || goes_on_) {
      const int64_t pitch = int64_t(rows_.lanes.panels) * rows_.lanes.columns;
      auto* const part =
          static_cast<Sum<Element>*>(rows_.sums) + (int64_t(at_) * 2 + (begun_ ? 0 : 1)) * pitch + column();
#pragma unroll
      for (int j = 0; j < kColumns; ++j) part[j] = sums[j];
    } else if constexpr (kPlain) {
      Sum<Element> results[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) results[j] = alpha_ * sums[j];
      few_columns::store<kColumns>(static_cast<ElementB*>(args_.c) + row_ * args_.ldc + column(), results);
    } else {
      write_row<ElementB>(args_, only_scales(args_.epilogue, kTypeOf<ElementB>), alpha_, row_, column(), columns, sums);
    }
  }

  int columns;
  int row_end;  // entry behind the row's last one here

 private:
  // Of the row, and asks for that of the next one. None ends behind the last one.
  __device__ void read_end() {
    goes_on_ = next_end_ > end_;
    row_end = row_ < beyond_ ? min(next_end_, end_) : INT_MAX;
    if (row_ + 1 < beyond_) next_end_ = __ldg(rows_.row_ptr + row_ + 2);
  }

  const LaunchArgs& args_;
  const RowChunks& rows_;
  float alpha_;
  bool begun_ = false, goes_on_;
  int at_, panel_;
  int row_, beyond_, end_, next_end_ = 0;
};

}  // namespace sparsek::cuda::few_columns
