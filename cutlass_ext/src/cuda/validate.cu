// SPDX-License-Identifier: Apache-2.0
#include "cuda/validate.h"

#include <cstdint>

#include "abi/error.h"
#include "cuda/cuda_error.h"
#include "cuda/device_array.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace validation {

using Fault = unsigned long long;
constexpr Fault kNoFault = ~0ull;

// Faults are ordered: those of row_ptr before those of col_idx, then by place. The status fills the low byte.
__device__ Fault make_fault(bool in_col_idx, int64_t place, sparsek_status status) {
  return Fault(in_col_idx) << 63 | Fault(place) << 8 | Fault(status);
}
sparsek_status status_of(Fault fault) { return static_cast<sparsek_status>(fault & 0xff); }
int64_t place_of(Fault fault) { return static_cast<int64_t>((fault & ~(1ull << 63)) >> 8); }

// One thread a block row: its row_ptr, and its columns only if the row lies within the arrays.
template <class Index>
__global__ void find_first_fault(const Index* row_ptr, const Index* col_idx, int64_t block_rows, int64_t block_cols,
                                 int64_t nnzb, Fault* first) {
  const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row == 0 && row_ptr[0] != 0) atomicMin(first, make_fault(false, 0, SPARSEK_ROW_PTR_START));
  if (row == 0 && row_ptr[block_rows] != nnzb) {
    atomicMin(first, make_fault(false, block_rows, SPARSEK_ROW_PTR_END));
  }
  if (row >= block_rows) return;
  const int64_t begin = row_ptr[row], end = row_ptr[row + 1];
  if (end < begin) atomicMin(first, make_fault(false, row + 1, SPARSEK_ROW_PTR_NOT_MONOTONE));
  if (begin < 0 || end < begin || end > nnzb) return;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t col = col_idx[i];
    sparsek_status status = SPARSEK_OK;
    if (col < 0 || col >= block_cols) {
      status = SPARSEK_COL_IDX_RANGE;
    } else if (i > begin && col == col_idx[i - 1]) {
      status = SPARSEK_COL_IDX_REPEATED;
    } else if (i > begin && col < col_idx[i - 1]) {
      status = SPARSEK_COL_IDX_UNSORTED;
    }
    if (status != SPARSEK_OK) {
      atomicMin(first, make_fault(true, i, status));
      return;
    }
  }
}

template <class Index>
long long value_at(const void* array, int64_t place) {
  Index value = 0;
  check(cudaMemcpy(&value, static_cast<const Index*>(array) + place, sizeof(value), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
  return static_cast<long long>(value);
}

template <class Index>
void validate(const sparsek_bsr& a) {
  const int64_t block_rows = (a.rows + a.block_m - 1) / a.block_m;
  const int64_t block_cols = (a.cols + a.block_k - 1) / a.block_k;
  DeviceArray<Fault> first(std::vector<Fault>{kNoFault});
  constexpr int kThreads = 128;
  const unsigned grid = static_cast<unsigned>(block_rows / kThreads + 1);
  find_first_fault<Index><<<grid, kThreads>>>(static_cast<const Index*>(a.row_ptr),
                                              static_cast<const Index*>(a.col_idx), block_rows, block_cols, a.nnzb,
                                              first.data());
  check(cudaGetLastError(), "validation kernel");
  Fault fault = kNoFault;
  check(cudaMemcpy(&fault, first.data(), sizeof(fault), cudaMemcpyDeviceToHost), "validation kernel");
  if (fault == kNoFault) return;

  const sparsek_status status = status_of(fault);
  const long long place = place_of(fault);
  switch (status) {
    case SPARSEK_ROW_PTR_START:
      fail(status, "row_ptr[0] = %lld is not 0", value_at<Index>(a.row_ptr, 0));
    case SPARSEK_ROW_PTR_END:
      fail(status, "row_ptr[%lld] = %lld is not nnzb = %lld", place, value_at<Index>(a.row_ptr, place),
           static_cast<long long>(a.nnzb));
    case SPARSEK_ROW_PTR_NOT_MONOTONE:
      fail(status, "row_ptr[%lld] = %lld is below row_ptr[%lld] = %lld", place, value_at<Index>(a.row_ptr, place),
           place - 1, value_at<Index>(a.row_ptr, place - 1));
    case SPARSEK_COL_IDX_RANGE:
      fail(status, "col_idx[%lld] = %lld is not within 0 and %lld block columns", place,
           value_at<Index>(a.col_idx, place), static_cast<long long>(block_cols));
    default:
      fail(status, "col_idx[%lld] = %lld %s col_idx[%lld] in the same block row", place,
           value_at<Index>(a.col_idx, place), status == SPARSEK_COL_IDX_REPEATED ? "repeats" : "is below", place - 1);
  }
}

}  // namespace validation

void validate_device_index(const sparsek_bsr& a) {
  if (a.index_type == SPARSEK_INT64) {
    validation::validate<int64_t>(a);
  } else {
    validation::validate<int32_t>(a);
  }
}

}  // namespace sparsek::cuda
