// SPDX-License-Identifier: Apache-2.0
#include "cuda/transposed_index.h"

#include <algorithm>

#include "cuda/cuda_error.h"
#include "cuda/prefix_sum.cuh"
#include "plan/transpose_index.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace transposed_indexing {

constexpr int kThreads = 256, kWarp = 32;
constexpr int kMostCtas = 132 * 8;

__global__ void __launch_bounds__(kThreads) clear(int32_t* counts, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < count; i += gridDim.x * int64_t{kThreads})
    counts[i] = 0;
}

// counts[c + 1]: the blocks of block column c.
__global__ void __launch_bounds__(kThreads) count_columns(CheckedIndex from, int32_t block_rows, int32_t* counts) {
  if (!is_good(from)) return;
  const int32_t blocks = from.row_ptr[block_rows];
  for (int64_t e = blockIdx.x * int64_t{kThreads} + threadIdx.x; e < blocks; e += gridDim.x * int64_t{kThreads}) {
    atomicAdd(counts + from.col_idx[e] + 1, 1);
  }
}

// In place; `copy` gets the same. One CTA.
__global__ void __launch_bounds__(kPrefixThreads) sum_up(int32_t* counts, int32_t* copy, int64_t count) {
  prefix_sum(counts, copy, count);
}

// A warp a block row of the matrix.
__global__ void __launch_bounds__(kThreads) place_blocks(CheckedIndex from, int32_t block_rows, TransposedIndex to) {
  if (!is_good(from)) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row < block_rows; row += warps) {
    for (int32_t e = from.row_ptr[row] + lane; e < from.row_ptr[row + 1]; e += kWarp) {
      const int32_t at = atomicAdd(to.cursor + from.col_idx[e], 1);
      to.col_idx[at] = static_cast<int32_t>(row);
      to.block_idx[at] = from.block_idx == nullptr ? e : from.block_idx[e];
    }
  }
}

unsigned ctas_for(int64_t threads) {
  return static_cast<unsigned>(std::clamp<int64_t>((threads + kThreads - 1) / kThreads, 1, kMostCtas));
}

}  // namespace transposed_indexing

TransposedLayout::TransposedLayout(const BsrShape& shape, Layout& layout)
    : row_ptr_(layout.place<int32_t>(static_cast<size_t>(shape.block_cols) + 1)),
      col_idx_(layout.place<int32_t>(static_cast<size_t>(shape.nnzb))),
      block_idx_(layout.place<int32_t>(static_cast<size_t>(shape.nnzb))),
      cursor_(layout.place<int32_t>(static_cast<size_t>(shape.block_cols) + 1)) {}

TransposedIndex TransposedLayout::within(std::byte* memory) const {
  return {reinterpret_cast<int32_t*>(memory + row_ptr_), reinterpret_cast<int32_t*>(memory + col_idx_),
          reinterpret_cast<int32_t*>(memory + block_idx_), reinterpret_cast<int32_t*>(memory + cursor_)};
}

void prepare_transposed_index() {
  namespace k = transposed_indexing;
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, k::clear), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, k::count_columns), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, k::sum_up), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, k::place_blocks), "cudaFuncGetAttributes");
}

sparsek_bsr enqueue_transposed(const CheckedIndex& from, const BsrShape& shape, sparsek_dtype dtype,
                               const TransposedIndex& to, cudaStream_t stream) {
  namespace k = transposed_indexing;
  const int64_t ends = int64_t{shape.block_cols} + 1;
  k::clear<<<k::ctas_for(ends), k::kThreads, 0, stream>>>(to.row_ptr, ends);
  k::count_columns<<<k::ctas_for(shape.nnzb), k::kThreads, 0, stream>>>(from, shape.block_rows, to.row_ptr);
  k::sum_up<<<1, kPrefixThreads, 0, stream>>>(to.row_ptr, to.cursor, ends);
  k::place_blocks<<<k::ctas_for(int64_t{shape.block_rows} * k::kWarp), k::kThreads, 0, stream>>>(from, shape.block_rows,
                                                                                                 to);
  check(cudaGetLastError(), "transpose of the index");

  const BsrShape made = transposed(shape);
  sparsek_bsr bsr = {};
  bsr.abi_size = sizeof(bsr);
  bsr.rows = made.rows;
  bsr.cols = made.cols;
  bsr.block_m = made.block_m;
  bsr.block_k = made.block_k;
  bsr.nnzb = made.nnzb;
  bsr.dtype = dtype;
  bsr.index_type = SPARSEK_INT32;
  bsr.memory = SPARSEK_DEVICE;
  bsr.row_ptr = to.row_ptr;
  bsr.col_idx = to.col_idx;
  bsr.block_idx = to.block_idx;
  bsr.stream = stream;
  bsr.flags = SPARSEK_BSR_SORT | SPARSEK_BSR_BOUND;
  return bsr;
}

}  // namespace sparsek::cuda
