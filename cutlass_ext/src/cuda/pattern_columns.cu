// SPDX-License-Identifier: Apache-2.0
// Blocks that lists of columns tell, which may name a column several times: the chosen columns of each block row, or
// the elements of a matrix in CSR or COO. A CTA collects the columns of a block row in a bit mask.
#include <cub/block/block_scan.cuh>

#include <type_traits>

#include "abi/dtype.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/pattern_launch.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace pattern_columns {

using pattern::FaultyArray;
using pattern::IndexArray;
using pattern::Made;

constexpr int kThreads = kPatternThreads;
constexpr int kWord = 32;
constexpr int32_t kWindow = 1 << 17;  // columns that are collected at once

// The columns that a row of an array names.
struct Chosen {
  IndexArray columns;
  int64_t ld, count;
  int32_t block_cols;
  int64_t* fault;

  __device__ bool may_walk() const { return true; }
  template <class Visit>
  __device__ void walk(int64_t row, Visit visit) const {
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
      const int64_t at = row * ld + i, col = columns.get(at);
      if (col >= block_cols) {
        atomicMin(reinterpret_cast<unsigned long long*>(fault),
                  static_cast<unsigned long long>(make_fault(FaultyArray::kColIdx, at, SPARSEK_COL_IDX_RANGE)));
      } else if (col >= 0) {
        visit(static_cast<int32_t>(col));
      }
    }
  }
};

// Those of the elements of a block row.
struct Elements {
  IndexArray row_ptr, rows, col_idx;  // rows: of COO, where row_ptr is not there
  int64_t count;                      // of COO
  int64_t matrix_rows;
  int32_t block_m, block_k;
  const int64_t* fault;

  __device__ int64_t begin(int64_t row) const {
    if (row_ptr.is_there()) return row_ptr.get(row);
    int64_t low = 0, high = count;
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
  // Before the scan *fault is what was found.
  __device__ bool may_walk() const { return static_cast<uint64_t>(*fault) == pattern::kNoFault; }
  template <class Visit>
  __device__ void walk(int64_t block_row, Visit visit) const {
    const int64_t end = begin(min((block_row + 1) * block_m, matrix_rows));
    for (int64_t e = begin(block_row * block_m) + threadIdx.x; e < end; e += kThreads) {
      visit(static_cast<int32_t>(col_idx.get(e) / block_k));
    }
  }
};

// Sets a bit for each column of a row in [base, base + columns).
template <class Columns>
__device__ void collect(const Columns& columns, int64_t row, int32_t base, int32_t words, uint32_t* bits) {
  __syncthreads();
  for (int32_t word = threadIdx.x; word < words; word += kThreads) bits[word] = 0;
  __syncthreads();
  columns.walk(row, [&](int32_t col) {
    const int64_t at = int64_t{col} - base;
    if (at >= 0 && at < int64_t{words} * kWord) atomicOr(&bits[at / kWord], 1u << (at % kWord));
  });
  __syncthreads();
}

__device__ int32_t words_from(int32_t base, int32_t block_cols) {
  const int32_t columns = min(kWindow, block_cols - base);
  return (columns + kWord - 1) / kWord;
}

template <class Columns>
__global__ void __launch_bounds__(kThreads) count_columns(Columns columns, Made to) {
  __shared__ uint32_t bits[kWindow / kWord];
  __shared__ int32_t count;
  start_dependent();
  const bool may_walk = columns.may_walk();
  for (int64_t row = blockIdx.x; row < to.shape.block_rows; row += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) count = 0;
    // Once where there are no columns, too: a column that is named is a fault then.
    for (int64_t base = 0; may_walk && (base == 0 || base < to.shape.block_cols); base += kWindow) {
      const int32_t words = words_from(static_cast<int32_t>(base), to.shape.block_cols);
      collect(columns, row, static_cast<int32_t>(base), words, bits);
      int32_t mine = 0;
      for (int32_t word = threadIdx.x; word < words; word += kThreads) mine += __popc(bits[word]);
      if (mine > 0) atomicAdd(&count, mine);
    }
    __syncthreads();
    if (threadIdx.x == 0) to.row_ptr.set(row + 1, count);
  }
}

template <class Columns>
__global__ void __launch_bounds__(kThreads) write_columns(Columns columns, Made to) {
  using BlockScan = cub::BlockScan<int32_t, kThreads>;
  __shared__ typename BlockScan::TempStorage storage;
  __shared__ uint32_t bits[kWindow / kWord];
  start_dependent();
  for (int64_t row = blockIdx.x; row < to.shape.block_rows; row += gridDim.x) {
    int64_t at = to.row_ptr.get(row);
    const int64_t end = to.row_ptr.get(row + 1);
    for (int64_t base = 0; base < to.shape.block_cols && at < end; base += kWindow) {
      const int32_t words = words_from(static_cast<int32_t>(base), to.shape.block_cols);
      collect(columns, row, static_cast<int32_t>(base), words, bits);
      for (int32_t first = 0; first < words; first += kThreads) {
        const int32_t word = first + static_cast<int32_t>(threadIdx.x);
        uint32_t mine = word < words ? bits[word] : 0;
        int32_t before, all;
        BlockScan(storage).ExclusiveSum(__popc(mine), before, all);
        __syncthreads();
        for (int64_t place = at + before; mine != 0 && place < end; ++place) {
          to.col_idx.set(place, base + word * kWord + __ffs(static_cast<int>(mine)) - 1);
          mine &= mine - 1;
        }
        at += all;
      }
    }
  }
}

// A CTA a block row: zeros, then the elements, a warp a row.
template <class T>
__global__ void __launch_bounds__(kThreads) place_elements(Elements elements, const T* from, Made to) {
  constexpr int kWarp = 32;
  start_dependent();
  T* const values = static_cast<T*>(to.values);
  const int64_t block = int64_t{to.shape.block_m} * to.shape.block_k;
  for (int64_t block_row = blockIdx.x; block_row < to.shape.block_rows; block_row += gridDim.x) {
    const int64_t begin = to.row_ptr.get(block_row), end = to.row_ptr.get(block_row + 1);
    if (begin == end) continue;
    for (int64_t at = begin * block + threadIdx.x; at < end * block; at += kThreads) values[at] = T{0};
    __syncthreads();
    for (int32_t i = static_cast<int32_t>(threadIdx.x) / kWarp; i < to.shape.block_m; i += kThreads / kWarp) {
      const int64_t row = block_row * to.shape.block_m + i;
      if (row >= to.shape.rows) break;
      const int64_t last = elements.begin(row + 1);
      for (int64_t e = elements.begin(row) + threadIdx.x % kWarp; e < last; e += kWarp) {
        const int64_t col = elements.col_idx.get(e), block_col = col / to.shape.block_k;
        int64_t low = begin, high = end;
        while (low < high) {
          const int64_t middle = low + (high - low) / 2;
          if (to.col_idx.get(middle) < block_col) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        if (low == end || to.col_idx.get(low) != block_col) continue;  // there was no room for it
        values[low * block + int64_t{i} * to.shape.block_k + col % to.shape.block_k] = from[e];
      }
    }
    __syncthreads();
  }
}

template <class Columns>
void make(const Columns& columns, const pattern::MakeJob& job) {
  const auto ctas = static_cast<unsigned>(std::clamp<int64_t>(job.to.shape.block_rows, 1, kMostPatternCtas));
  launch_pattern("count of columns", ctas, kThreads, job.stream, count_columns<Columns>, columns, job.to);
  enqueue_scan(job.to, {/*judged=*/true}, job.stream);
  launch_pattern("list of columns", ctas, kThreads, job.stream, write_columns<Columns>, columns, job.to);
}

template <class T>
void place(const Elements& elements, const pattern::MakeJob& job) {
  const auto ctas = static_cast<unsigned>(std::clamp<int64_t>(job.to.shape.block_rows, 1, kMostPatternCtas));
  launch_pattern("elements into blocks", ctas, kThreads, job.stream, place_elements<T>, elements,
                 static_cast<const T*>(job.from[0].values), job.to);
}

}  // namespace pattern_columns

void make_from_columns(const pattern::MakeJob& job) {
  enqueue_no_fault(job.to.fault, job.stream);
  pattern_columns::make(
      pattern_columns::Chosen{job.source_index, job.ld, job.count, job.to.shape.block_cols, job.to.fault}, job);
}

void make_from_csr(const pattern::MakeJob& job) {
  const pattern::Given& csr = job.from[0];
  enqueue_no_fault(job.to.fault, job.stream);
  if (job.source_index.is_there()) {
    enqueue_find_faults_of_coo(csr, job.source_index, job.to.fault, job.stream);
  } else if (csr.row_ptr.is_there()) {
    enqueue_find_faults(csr, job.to.fault, job.stream);
  }
  const BsrShape& shape = job.to.shape;
  const pattern_columns::Elements elements{csr.row_ptr,    job.source_index, csr.col_idx,   csr.shape.nnzb,
                                           csr.shape.rows, shape.block_m,    shape.block_k, job.to.fault};
  pattern_columns::make(elements, job);
  if (job.to.values == nullptr) return;
  switch (dtype_bytes(job.dtype)) {
    case 2:
      return pattern_columns::place<uint16_t>(elements, job);
    case 4:
      return pattern_columns::place<uint32_t>(elements, job);
    default:
      return pattern_columns::place<uint64_t>(elements, job);
  }
}

}  // namespace sparsek::cuda
