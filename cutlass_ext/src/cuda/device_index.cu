// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_index.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "abi/error.h"
#include "cuda/cuda_error.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/index_sort.cuh"
#include "cuda/launch_dependent.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace indexing {

constexpr int kWarp = 32;
constexpr int kRowsPerCta = 8;  // a warp each, again and again
constexpr int kThreads = kWarp * kRowsPerCta;
constexpr unsigned kAllLanes = ~0u;

sparsek_status status_of(uint64_t fault) { return static_cast<sparsek_status>(fault & 0xff); }
int64_t place_of(uint64_t fault) { return static_cast<int64_t>(without_array(fault) >> 8); }

// What is copied. With block_idx, or where rows are to be sorted, the blocks of values are named.
template <class Index>
struct Given {
  const Index *row_ptr, *col_idx, *block_idx;
  int32_t block_rows, block_cols;
  int64_t nnzb;
  bool bounded, unsorted;
};

__device__ sparsek_status check_column(int64_t col, int64_t before, int32_t block_cols) {
  if (col < 0 || col >= block_cols) return SPARSEK_COL_IDX_RANGE;
  if (col == before) return SPARSEK_COL_IDX_REPEATED;
  return col < before ? SPARSEK_COL_IDX_UNSORTED : SPARSEK_OK;
}

// The block of values that belongs at a place.
template <class Index>
__device__ int64_t copy_block(const Given<Index>& from, int64_t at, Finding& finding) {
  if (from.block_idx == nullptr) return at;
  const int64_t block = from.block_idx[at];
  if (block < 0 || block >= from.nnzb) finding.add(kBlockIdx, at, SPARSEK_BLOCK_IDX_RANGE, block, from.nnzb);
  return block;
}

// A warp's block row: its row_ptr, and its columns only if the row lies within the arrays. Returns its blocks.
template <class Index>
__device__ int64_t copy_row(const Given<Index>& from, const CheckedIndex& to, int64_t row, Finding& finding) {
  const int lane = threadIdx.x % kWarp;
  const int64_t begin = from.row_ptr[row];
  if (lane == 0) {
    to.row_ptr[row] = static_cast<int32_t>(begin);
    if (row == 0 && begin != 0) finding.add(kRowPtr, 0, SPARSEK_ROW_PTR_START, begin, 0);
    if (row == from.block_rows && (from.bounded ? begin > from.nnzb : begin != from.nnzb)) {
      finding.add(kRowPtr, row, SPARSEK_ROW_PTR_END, begin, from.nnzb);
    }
  }
  if (row == from.block_rows) return 0;
  const int64_t end = from.row_ptr[row + 1];
  if (lane == 0 && end < begin) finding.add(kRowPtr, row + 1, SPARSEK_ROW_PTR_NOT_MONOTONE, end, begin);
  if (begin < 0 || end < begin || end > from.nnzb) return 0;

  int64_t last = -1;  // of the lanes' columns before
  for (int64_t i = begin; i < end; i += kWarp) {
    const bool mine = i + lane < end;
    const int64_t col = mine ? from.col_idx[i + lane] : 0;
    const int64_t left = __shfl_up_sync(kAllLanes, col, 1);
    if (mine) {
      const int64_t at = i + lane, before = from.unsorted ? -1 : lane == 0 ? last : left;
      const sparsek_status status = check_column(col, before, from.block_cols);
      if (status != SPARSEK_OK) finding.add(kColIdx, at, status, col, at - 1);
      to.col_idx[at] = static_cast<int32_t>(col);
      if (to.block_idx != nullptr) to.block_idx[at] = static_cast<int32_t>(copy_block(from, at, finding));
    }
    last = __shfl_sync(kAllLanes, col, kWarp - 1);
  }
  return end - begin;
}

// One warp a block row. A column is read once: what was checked is what is used.
template <class Index>
__global__ void __launch_bounds__(kThreads) copy_index(Given<Index> from, CheckedIndex to) {
  __shared__ unsigned long long first;
  __shared__ int longest;
  start_dependent();
  if (threadIdx.x == 0) {
    first = kNoFault;
    longest = 0;
  }
  if (threadIdx.x == 0 && blockIdx.x == 0) *to.arrived = 0;
  __syncthreads();
  Finding finding;
  int64_t most = 0;
  const int64_t step = int64_t(gridDim.x) * kRowsPerCta;
  for (int64_t row = int64_t(blockIdx.x) * kRowsPerCta + threadIdx.x / kWarp; row <= from.block_rows; row += step) {
    most = max(most, copy_row(from, to, row, finding));
  }
  if (finding.fault != kNoFault) atomicMin(&first, static_cast<unsigned long long>(finding.fault));
  if (threadIdx.x % kWarp == 0) atomicMax(&longest, static_cast<int>(most));
  __syncthreads();
  // No two threads find the same fault.
  const bool writes = first == kNoFault ? threadIdx.x == 0 : finding.fault == first;
  if (writes) to.verdicts[blockIdx.x] = {finding.fault, finding.value, finding.other, longest};
}

// One CTA; a thread a verdict.
__global__ void __launch_bounds__(kMostVerdicts) tell_fault(CheckedIndex index, int64_t* fault) {
  __shared__ unsigned long long first;
  if (threadIdx.x == 0) first = kNoFault;
  __syncthreads();
  const int at = static_cast<int>(threadIdx.x);
  if (at < index.verdict_count) atomicMin(&first, static_cast<unsigned long long>(index.verdicts[at].fault));
  __syncthreads();
  if (threadIdx.x == 0 && fault != nullptr) {
    *fault = first == kNoFault ? 0 : static_cast<int64_t>(without_array(first));
  }
}

[[noreturn]] void report(const IndexVerdict& verdict, const BsrShape& shape) {
  const sparsek_status status = status_of(verdict.fault);
  const long long place = place_of(verdict.fault), value = verdict.value, other = verdict.other;
  switch (status) {
    case SPARSEK_ROW_PTR_START:
      fail(status, "row_ptr[0] = %lld is not 0", value);
    case SPARSEK_ROW_PTR_END:
      fail(status, "row_ptr[%lld] = %lld is not nnzb = %lld", place, value, other);
    case SPARSEK_ROW_PTR_NOT_MONOTONE:
      fail(status, "row_ptr[%lld] = %lld is below row_ptr[%lld] = %lld", place, value, place - 1, other);
    case SPARSEK_COL_IDX_RANGE:
      fail(status, "col_idx[%lld] = %lld is not within 0 and %d block columns", place, value, shape.block_cols);
    case SPARSEK_BLOCK_IDX_RANGE:
      fail(status, "block_idx[%lld] = %lld is not within 0 and %lld, the blocks of values", place, value, other);
    case SPARSEK_COL_IDX_REPEATED:
      fail(status, "col_idx[%lld] = %lld repeats col_idx[%lld] in the same block row: add the two blocks up", place,
           value, other);
    default:
      fail(status,
           "col_idx[%lld] = %lld is below col_idx[%lld] in the same block row: sort the columns of each block row, or "
           "set SPARSEK_BSR_SORT",
           place, value, other);
  }
}

// One for each block row and the end of row_ptr.
int64_t ctas_for(const BsrShape& shape) { return (int64_t{shape.block_rows} + kRowsPerCta) / kRowsPerCta; }

template <class Index>
CheckedIndex enqueue(const sparsek_bsr& a, CheckedIndex to, cudaStream_t stream) {
  const BsrShape shape = make_bsr_shape(a);
  const bool unsorted = (a.flags & SPARSEK_BSR_SORT) != 0;
  const Given<Index> from = {static_cast<const Index*>(a.row_ptr),
                             static_cast<const Index*>(a.col_idx),
                             static_cast<const Index*>(a.block_idx),
                             shape.block_rows,
                             shape.block_cols,
                             shape.nnzb,
                             (a.flags & SPARSEK_BSR_BOUND) != 0,
                             unsorted};
  if (a.block_idx == nullptr && !unsorted) to.block_idx = nullptr;
  const dim3 ctas(static_cast<unsigned>(to.verdict_count));
  launch_dependent("copy of the index", copy_index<Index>, ctas, kThreads, 0, stream, from, to);
  if (unsorted) {
    launch_dependent("sort of the index", sort_columns<Index>, ctas, kSortThreads, 0, stream, from.col_idx,
                     shape.block_rows, shape.nnzb, to);
  }
  return to;
}

}  // namespace indexing

IndexLayout::IndexLayout(const BsrShape& shape, Layout& layout)
    : row_ptr_(layout.place<int32_t>(static_cast<size_t>(shape.block_rows) + 1)),
      col_idx_(layout.place<int32_t>(static_cast<size_t>(shape.nnzb))),
      block_idx_(layout.place<int32_t>(static_cast<size_t>(shape.nnzb))),
      verdict_count_(static_cast<int32_t>(std::min<int64_t>(kMostVerdicts, indexing::ctas_for(shape)))) {
  verdicts_ = layout.place<IndexVerdict>(static_cast<size_t>(verdict_count_));
  arrived_ = layout.place<uint32_t>(1);
}

CheckedIndex IndexLayout::within(std::byte* memory) const {
  return {reinterpret_cast<int32_t*>(memory + row_ptr_),   reinterpret_cast<int32_t*>(memory + col_idx_),
          reinterpret_cast<int32_t*>(memory + block_idx_), reinterpret_cast<IndexVerdict*>(memory + verdicts_),
          reinterpret_cast<uint32_t*>(memory + arrived_),  verdict_count_};
}

CheckedIndex enqueue_index(const sparsek_bsr& a, const CheckedIndex& to, cudaStream_t stream) {
  switch (a.index_type) {
    case SPARSEK_INT16:
      return indexing::enqueue<int16_t>(a, to, stream);
    case SPARSEK_INT64:
      return indexing::enqueue<int64_t>(a, to, stream);
    default:
      return indexing::enqueue<int32_t>(a, to, stream);
  }
}

void enqueue_fault(const CheckedIndex& index, int64_t* fault, cudaStream_t stream) {
  indexing::tell_fault<<<1, kMostVerdicts, 0, stream>>>(index, fault);
  check(cudaGetLastError(), "fault of the index");
}

DeviceIndex::DeviceIndex(const BsrShape& shape) : BsrShape(shape) {
  longest_row = block_rows == 0 ? 0 : static_cast<int32_t>((nnzb + block_rows - 1) / block_rows);
}

DeviceIndex::DeviceIndex(const sparsek_bsr& a, PlanMemory& memory, const StreamUses& uses, cudaStream_t stream)
    : DeviceIndex(make_bsr_shape(a)) {
  Layout layout;
  const IndexLayout places(*this, layout);
  block_ = memory.allocate(layout.bytes(), &uses, stream);
  room_ = places.within(block_.data());
  copy(a, stream);
}

int32_t DeviceIndex::require_good(PlanMemory& memory) const {
  std::vector<IndexVerdict> verdicts(static_cast<size_t>(arrays_.verdict_count));
  memory.read(verdicts.data(), arrays_.verdicts, verdicts.size());
  const auto first = std::min_element(verdicts.begin(), verdicts.end(),
                                      [](const auto& a, const auto& b) { return a.fault < b.fault; });
  if (first->fault != kNoFault) indexing::report(*first, *this);
  int64_t longest = 0;
  for (const IndexVerdict& verdict : verdicts) longest = std::max(longest, verdict.longest_row);
  return static_cast<int32_t>(longest);
}

}  // namespace sparsek::cuda
