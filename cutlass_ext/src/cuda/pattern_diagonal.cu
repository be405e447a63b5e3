// SPDX-License-Identifier: Apache-2.0
// Block-diagonal patterns: of experts that have so many tokens, and of several matrices.
#include <cub/block/block_scan.cuh>

#include "cuda/dependent_launch.cuh"
#include "cuda/pattern_launch.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace pattern_diagonal {

using pattern::FaultyArray;
using pattern::Given;
using pattern::IndexArray;
using pattern::Made;

constexpr int kWarp = 32;
constexpr int kThreads = kPatternThreads;

// One CTA. Tells fault and blocks; where there is a fault, bins are empty.
__global__ void __launch_bounds__(kThreads) fill_bins(IndexArray counts, int64_t count, IndexArray bins, Made to) {
  using BlockScan = cub::BlockScan<int64_t, kThreads>;
  __shared__ typename BlockScan::TempStorage storage;
  __shared__ unsigned long long fault;
  start_dependent();
  if (threadIdx.x == 0) fault = pattern::kNoFault;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < count; i += kThreads) {
    if (counts.get(i) < 0) {
      atomicMin(&fault, static_cast<unsigned long long>(make_fault(FaultyArray::kRowPtr, i, SPARSEK_BAD_SIZE)));
    }
  }
  __syncthreads();
  const bool is_faulty = fault != pattern::kNoFault;
  int64_t rows = 0;
  for (int64_t base = 0; base < count; base += kThreads) {
    const int64_t i = base + threadIdx.x;
    const int64_t tokens = i < count && !is_faulty ? counts.get(i) : 0;
    int64_t before, all;
    BlockScan(storage).ExclusiveSum(pattern::rows_of_tokens(tokens, to.shape.block_m), before, all);
    if (i < count) bins.set(i, pattern::bin_of(rows + before, bins.type));
    rows += all;
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  bins.set(count, pattern::bin_of(rows, bins.type));
  const int64_t blocks = pattern::blocks_of_rows(rows, to.shape.block_cols / count);
  if (to.blocks != nullptr) *to.blocks = blocks;
  *to.fault = is_faulty                                              ? pattern::reported_fault(fault)
              : rows > to.shape.block_rows || blocks > to.shape.nnzb ? int64_t{SPARSEK_OVER_CAPACITY}
                                                                     : 0;
}

// A warp a block row.
__global__ void __launch_bounds__(kThreads) fill_rows(IndexArray bins, int64_t count, Made to) {
  start_dependent();
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  const int64_t width = to.shape.block_cols / count, rows = bins.get(count);
  const auto begin_of = [&](int64_t row) { return min(min(row, rows) * width, to.shape.nnzb); };
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row <= to.shape.block_rows; row += warps) {
    const int64_t begin = begin_of(row);
    if (lane == 0) to.row_ptr.set(row, begin);
    if (row == to.shape.block_rows || row >= rows) continue;
    int64_t low = 0, high = count - 1;  // the first expert that ends behind the row
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (bins.get(middle + 1) > row) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    const int64_t end = begin_of(row + 1);
    for (int64_t at = begin + lane; at < end; at += kWarp) to.col_idx.set(at, low * width + at - begin);
  }
}

// One matrix of several.
struct Member {
  Given from;
  int32_t row_begin, col_begin;  // in blocks
  int64_t value_begin;
};
constexpr int kMostMembers = 28;  // of a launch, whose parameters have 4 KB
struct Members {
  Member member[kMostMembers];
};
static_assert(sizeof(Members) + sizeof(Made) + 16 <= 4096);

// CTA (x, i) has a part of member i, of which the first one's entries begin at those of the row before. The last row is
// told apart: where it is at fault, those of the next launch begin at 0, within the arrays.
__global__ void __launch_bounds__(kThreads) join_members(const __grid_constant__ Members members, Made to, bool first) {
  start_dependent();
  const Member& member = members.member[blockIdx.y];
  int64_t begin = first ? 0 : max(to.row_ptr.get(members.member[0].row_begin), int64_t{0});
  for (int i = 0; i < static_cast<int>(blockIdx.y); ++i) begin += blocks_of(members.member[i].from);
  const Given& from = member.from;
  const int64_t blocks = blocks_of(from);
  const int64_t thread = blockIdx.x * int64_t{kThreads} + threadIdx.x, threads = int64_t{kThreads} * gridDim.x;
  if (first && blockIdx.y == 0 && thread == 0) to.row_ptr.set(0, 0);
  for (int64_t row = 1 + thread; row <= from.shape.block_rows; row += threads) {
    to.row_ptr.set(member.row_begin + row, joined_row(from, row, begin));
  }
  for (int64_t e = thread; e < blocks; e += threads) {
    to.col_idx.set(begin + e, joined_column(from, e, member.col_begin));
    if (to.block_idx.is_there()) to.block_idx.set(begin + e, joined_block(from, e, member.value_begin));
  }
}

__global__ void tell_joined(Made to) {
  start_dependent();
  *to.fault = 0;
  if (to.shape.block_rows == 0) to.row_ptr.set(0, 0);
  if (to.blocks != nullptr) *to.blocks = max(to.row_ptr.get(to.shape.block_rows), int64_t{0});
}

}  // namespace pattern_diagonal

void make_from_counts(const pattern::MakeJob& job) {
  namespace k = pattern_diagonal;
  launch_pattern("bins of experts", 1, k::kThreads, job.stream, k::fill_bins, job.source_index, job.count, job.bins,
                 job.to);
  launch_pattern("rows of experts", pattern_ctas((int64_t{job.to.shape.block_rows} + 1) * k::kWarp), k::kThreads,
                 job.stream, k::fill_rows, job.bins, job.count, job.to);
}

void make_block_diagonal(const pattern::MakeJob& job) {
  namespace k = pattern_diagonal;
  k::Members members = {};
  int count = 0;
  int32_t row_begin = 0, col_begin = 0;
  int64_t value_begin = 0, most = 0;
  bool first = true;
  const auto launch = [&] {
    if (count == 0) return;
    cudaFuncAttributes attributes;  // loads the kernel, which a capture does not allow
    check(cudaFuncGetAttributes(&attributes, k::join_members), "join of matrices");
    const dim3 ctas(std::min(pattern_ctas(most), 132u), static_cast<unsigned>(count));
    launch_dependent<k::Members, pattern::Made, bool>("join of matrices", k::join_members, ctas, k::kThreads, 0,
                                                      static_cast<cudaStream_t>(job.stream), members, job.to, first);
    first = false;
    count = 0;
    most = 0;
  };
  for (const pattern::Given& from : job.from) {
    if (from.shape.block_rows > 0) {
      members.member[count++] = {from, row_begin, col_begin, value_begin};
      most = std::max<int64_t>(most, std::max<int64_t>(from.shape.nnzb, from.shape.block_rows));
    }
    row_begin += from.shape.block_rows;
    col_begin += from.shape.block_cols;
    value_begin += from.shape.nnzb;
    if (count == k::kMostMembers) launch();
  }
  launch();
  launch_pattern("status of joined matrices", 1, 1, job.stream, k::tell_joined, job.to);
}

}  // namespace sparsek::cuda
