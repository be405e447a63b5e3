// SPDX-License-Identifier: Apache-2.0
// Faults of an index that stays where it is. pattern/host.cpp looks for the same ones.
#include "cuda/cuda_matrix.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/make_pattern.h"
#include "cuda/pattern_launch.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace pattern_check {

using pattern::FaultyArray;
using pattern::Given;
using pattern::IndexArray;

constexpr int kWarp = 32;
constexpr int kThreads = kPatternThreads;

// The first fault that a thread has found.
class Finding {
 public:
  __device__ void add(FaultyArray array, int64_t place, sparsek_status status) {
    first_ = min(first_, make_fault(array, place, status));
  }
  __device__ void tell(int64_t* fault) const {
    if (first_ != pattern::kNoFault) {
      atomicMin(reinterpret_cast<unsigned long long*>(fault), static_cast<unsigned long long>(first_));
    }
  }

 private:
  uint64_t first_ = pattern::kNoFault;
};

__device__ bool lies_within(int64_t begin, int64_t end, int64_t nnzb) {
  return begin >= 0 && end >= begin && end <= nnzb;
}

// A warp a block row.
__global__ void __launch_bounds__(kThreads) check_rows(Given index, int64_t* fault) {
  start_dependent();
  const BsrShape& shape = index.shape;
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  Finding finding;
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row <= shape.block_rows; row += warps) {
    const int64_t begin = index.row_ptr.get(row);
    if (row == 0 && begin != 0) finding.add(FaultyArray::kRowPtr, 0, SPARSEK_ROW_PTR_START);
    if (row == shape.block_rows) {
      if (index.bounded ? begin > shape.nnzb : begin != shape.nnzb) {
        finding.add(FaultyArray::kRowPtr, row, SPARSEK_ROW_PTR_END);
      }
      continue;
    }
    const int64_t end = index.row_ptr.get(row + 1);
    if (end < begin) finding.add(FaultyArray::kRowPtr, row + 1, SPARSEK_ROW_PTR_NOT_MONOTONE);
    if (!lies_within(begin, end, shape.nnzb)) continue;
    for (int64_t e = begin + lane; e < end; e += kWarp) {
      const int64_t col = index.col_idx.get(e), block = index.block(e);
      const int64_t before = index.unsorted || e == begin ? -1 : index.col_idx.get(e - 1);
      if (block < 0 || block >= shape.nnzb) finding.add(FaultyArray::kBlockIdx, e, SPARSEK_BLOCK_IDX_RANGE);
      if (col < 0 || col >= shape.block_cols) {
        finding.add(FaultyArray::kColIdx, e, SPARSEK_COL_IDX_RANGE);
      } else if (col <= before) {
        finding.add(FaultyArray::kColIdx, e, col == before ? SPARSEK_COL_IDX_REPEATED : SPARSEK_COL_IDX_UNSORTED);
      }
    }
  }
  finding.tell(fault);
}

// Columns that an unsorted row has twice. A CTA a block row.
__global__ void __launch_bounds__(kThreads) find_repeated(Given index, int64_t* fault) {
  constexpr int32_t kWindow = 1 << 17;  // columns that are looked for at once
  constexpr int kWord = 32;
  __shared__ uint32_t bits[kWindow / kWord];
  start_dependent();
  const BsrShape& shape = index.shape;
  Finding finding;
  for (int64_t row = blockIdx.x; row < shape.block_rows; row += gridDim.x) {
    const int64_t begin = index.row_ptr.get(row), end = index.row_ptr.get(row + 1);
    if (!lies_within(begin, end, shape.nnzb)) continue;
    for (int64_t base = 0; base < shape.block_cols; base += kWindow) {
      __syncthreads();
      for (int word = threadIdx.x; word < kWindow / kWord; word += kThreads) bits[word] = 0;
      __syncthreads();
      for (int64_t e = begin + threadIdx.x; e < end; e += kThreads) {
        const int64_t col = index.col_idx.get(e), at = col - base;
        if (col < 0 || col >= shape.block_cols || at < 0 || at >= kWindow) continue;
        const uint32_t bit = 1u << (at % kWord);
        if ((atomicOr(&bits[at / kWord], bit) & bit) == 0) continue;
        // Its second place, whichever thread found it.
        int64_t second = begin;
        for (int found = 0; found < 2; ++second) found += index.col_idx.get(second) == col ? 1 : 0;
        finding.add(FaultyArray::kColIdx, second - 1, SPARSEK_COL_IDX_REPEATED);
      }
    }
  }
  finding.tell(fault);
}

__global__ void __launch_bounds__(kThreads) check_elements(Given index, IndexArray rows, int64_t* fault) {
  start_dependent();
  const BsrShape& shape = index.shape;
  Finding finding;
  for (int64_t e = blockIdx.x * int64_t{kThreads} + threadIdx.x; e < shape.nnzb; e += int64_t{kThreads} * gridDim.x) {
    const int64_t row = rows.get(e), col = index.col_idx.get(e);
    const int64_t row_before = e > 0 ? rows.get(e - 1) : 0;
    const int64_t col_before = e > 0 && row == row_before ? index.col_idx.get(e - 1) : -1;
    if (row < row_before || row >= shape.rows) {
      finding.add(FaultyArray::kRowPtr, e, SPARSEK_ROW_PTR_NOT_MONOTONE);
    }
    if (col < 0 || col >= shape.cols) {
      finding.add(FaultyArray::kColIdx, e, SPARSEK_COL_IDX_RANGE);
    } else if (col <= col_before) {
      finding.add(FaultyArray::kColIdx, e, col == col_before ? SPARSEK_COL_IDX_REPEATED : SPARSEK_COL_IDX_UNSORTED);
    }
  }
  finding.tell(fault);
}

__global__ void tell_fault(int64_t* fault) {
  start_dependent();
  *fault = pattern::reported_fault(static_cast<uint64_t>(*fault));
}

}  // namespace pattern_check

void enqueue_find_faults(const pattern::Given& index, int64_t* fault, sparsek_stream stream) {
  namespace k = pattern_check;
  const int64_t rows = index.shape.block_rows;
  launch_pattern("check of the index", pattern_ctas((rows + 1) * k::kWarp), k::kThreads, stream, k::check_rows, index,
                 fault);
  if (!index.unsorted) return;
  launch_pattern("check for repeated columns", static_cast<unsigned>(std::clamp<int64_t>(rows, 1, kMostPatternCtas)),
                 k::kThreads, stream, k::find_repeated, index, fault);
}

void enqueue_find_faults_of_coo(const pattern::Given& index, const pattern::IndexArray& rows, int64_t* fault,
                                sparsek_stream stream) {
  namespace k = pattern_check;
  launch_pattern("check of the elements", pattern_ctas(index.shape.nnzb), k::kThreads, stream, k::check_elements, index,
                 rows, fault);
}

void check_pattern(const pattern::Given& index, int64_t* fault, sparsek_stream stream, int device) {
  check_memory(index.row_ptr.data, SPARSEK_DEVICE, device, "row_ptr");
  if (index.col_idx.is_there()) check_memory(index.col_idx.data, SPARSEK_DEVICE, device, "col_idx");
  if (index.block_idx.is_there()) check_memory(index.block_idx.data, SPARSEK_DEVICE, device, "block_idx");
  check_memory(fault, SPARSEK_DEVICE, device, "fault");
  enqueue_no_fault(fault, stream);
  enqueue_find_faults(index, fault, stream);
  launch_pattern("status of the index", 1, 1, stream, pattern_check::tell_fault, fault);
}

}  // namespace sparsek::cuda
