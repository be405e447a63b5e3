// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_index.h"

#include <algorithm>
#include <cstdint>

#include "abi/error.h"
#include "cuda/cuda_error.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace indexing {

constexpr int kWarp = 32;
constexpr int kRowsPerCta = 4;  // a warp each
constexpr unsigned kAllLanes = ~0u;

using Fault = unsigned long long;
constexpr Fault kNoFault = ~0ull;

// What a pass over the index finds. It begins with all bits set.
struct Found {
  Fault first;          // the first fault
  int32_t longest_row;  // blocks of the longest block row; -1 where there is no row
};

// Faults are ordered: those of row_ptr before those of col_idx, then by place. The status fills the low byte.
__device__ Fault make_fault(bool in_col_idx, int64_t place, sparsek_status status) {
  return Fault(in_col_idx) << 63 | Fault(place) << 8 | Fault(status);
}
sparsek_status status_of(Fault fault) { return static_cast<sparsek_status>(fault & 0xff); }
int64_t place_of(Fault fault) { return static_cast<int64_t>((fault & ~(1ull << 63)) >> 8); }

struct Copy {
  int32_t block_rows, block_cols;
  int64_t nnzb;
  int32_t* row_ptr;  // (block_rows + 1)
  int32_t* col_idx;  // (nnzb)
  Found* found;
};

__device__ sparsek_status check_column(int64_t col, int64_t before, int32_t block_cols) {
  if (col < 0 || col >= block_cols) return SPARSEK_COL_IDX_RANGE;
  if (col == before) return SPARSEK_COL_IDX_REPEATED;
  return col < before ? SPARSEK_COL_IDX_UNSORTED : SPARSEK_OK;
}

// One warp a block row: its row_ptr, and its columns only if the row lies within the arrays. A column is read once:
// what was checked is what is used.
template <class Index>
__global__ void __launch_bounds__(kWarp* kRowsPerCta)
    copy_index(const Index* __restrict__ row_ptr, const Index* __restrict__ col_idx, Copy to) {
  const int64_t row = int64_t(blockIdx.x) * kRowsPerCta + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row > to.block_rows) return;
  const int64_t begin = row_ptr[row];
  if (lane == 0) {
    to.row_ptr[row] = static_cast<int32_t>(begin);
    if (row == 0 && begin != 0) atomicMin(&to.found->first, make_fault(false, 0, SPARSEK_ROW_PTR_START));
    if (row == to.block_rows && begin != to.nnzb)
      atomicMin(&to.found->first, make_fault(false, row, SPARSEK_ROW_PTR_END));
  }
  if (row == to.block_rows) return;
  const int64_t end = row_ptr[row + 1];
  if (lane == 0 && end < begin) atomicMin(&to.found->first, make_fault(false, row + 1, SPARSEK_ROW_PTR_NOT_MONOTONE));
  if (begin < 0 || end < begin || end > to.nnzb) return;
  if (lane == 0) atomicMax(&to.found->longest_row, static_cast<int32_t>(end - begin));

  int64_t last = -1;  // of the lanes' columns before
  for (int64_t i = begin; i < end; i += kWarp) {
    const bool mine = i + lane < end;
    const int64_t col = mine ? col_idx[i + lane] : 0;
    const int64_t left = __shfl_up_sync(kAllLanes, col, 1);
    if (mine) {
      const sparsek_status status = check_column(col, lane == 0 ? last : left, to.block_cols);
      if (status != SPARSEK_OK) atomicMin(&to.found->first, make_fault(true, i + lane, status));
      to.col_idx[i + lane] = static_cast<int32_t>(col);
    }
    last = __shfl_sync(kAllLanes, col, kWarp - 1);
  }
}

// To the host, behind what the stream holds.
template <class T>
void read(T& to, const T* from, cudaStream_t stream) {
  check(cudaMemcpyAsync(&to, from, sizeof(T), cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "copy of the index");
}

template <class Index>
[[noreturn]] void report(const sparsek_bsr& a, const BsrShape& shape, Fault fault, cudaStream_t stream) {
  const sparsek_status status = status_of(fault);
  const long long place = place_of(fault);
  const auto value_at = [&](const void* array, int64_t at) {
    Index value = 0;
    read(value, static_cast<const Index*>(array) + at, stream);
    return static_cast<long long>(value);
  };
  switch (status) {
    case SPARSEK_ROW_PTR_START:
      fail(status, "row_ptr[0] = %lld is not 0", value_at(a.row_ptr, 0));
    case SPARSEK_ROW_PTR_END:
      fail(status, "row_ptr[%lld] = %lld is not nnzb = %lld", place, value_at(a.row_ptr, place),
           static_cast<long long>(a.nnzb));
    case SPARSEK_ROW_PTR_NOT_MONOTONE:
      fail(status, "row_ptr[%lld] = %lld is below row_ptr[%lld] = %lld", place, value_at(a.row_ptr, place), place - 1,
           value_at(a.row_ptr, place - 1));
    case SPARSEK_COL_IDX_RANGE:
      fail(status, "col_idx[%lld] = %lld is not within 0 and %d block columns", place, value_at(a.col_idx, place),
           shape.block_cols);
    default:
      fail(status, "col_idx[%lld] = %lld %s col_idx[%lld] in the same block row", place, value_at(a.col_idx, place),
           status == SPARSEK_COL_IDX_REPEATED ? "repeats" : "is below", place - 1);
  }
}

template <class Index>
void take(const sparsek_bsr& a, DeviceIndex& index, PlanMemory& memory, cudaStream_t stream) {
  const PoolArray<Found> place(memory, 1, nullptr, stream);
  check(cudaMemsetAsync(place.data(), 0xff, place.bytes(), stream), "cudaMemsetAsync");
  const unsigned grid = static_cast<unsigned>(index.block_rows / kRowsPerCta + 1);
  const Copy to = {index.block_rows,     index.block_cols,     index.nnzb,
                   index.row_ptr.data(), index.col_idx.data(), place.data()};
  copy_index<<<grid, kWarp * kRowsPerCta, 0, stream>>>(static_cast<const Index*>(a.row_ptr),
                                                       static_cast<const Index*>(a.col_idx), to);
  check(cudaGetLastError(), "copy of the index");
  Found found = {};
  read(found, place.data(), stream);
  if (found.first != kNoFault) report<Index>(a, index, found.first, stream);
  index.longest_row = std::max(found.longest_row, 0);
}

}  // namespace indexing

DeviceIndex make_device_index(const sparsek_bsr& a, PlanMemory& memory, const StreamUses& uses) {
  const cudaStream_t stream = memory.releases().behind_default();
  DeviceIndex index;
  static_cast<BsrShape&>(index) = make_bsr_shape(a);
  index.row_ptr = PoolArray<int32_t>(memory, static_cast<size_t>(index.block_rows) + 1, &uses, stream);
  index.col_idx = PoolArray<int32_t>(memory, static_cast<size_t>(index.nnzb), &uses, stream);
  if (a.index_type == SPARSEK_INT64) {
    indexing::take<int64_t>(a, index, memory, stream);
  } else {
    indexing::take<int32_t>(a, index, memory, stream);
  }
  return index;
}

}  // namespace sparsek::cuda
