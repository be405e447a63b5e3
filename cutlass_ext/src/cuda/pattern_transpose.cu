// SPDX-License-Identifier: Apache-2.0
// The index of A^T, by counting. Blocks of a column come in any order, and are sorted by their rows at the end, so that
// the result is the same each time.
#include "abi/dtype.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/index_sort.cuh"
#include "cuda/pattern_launch.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace pattern_transpose {

using pattern::Given;
using pattern::IndexArray;
using pattern::Made;

constexpr int kWarp = 32;
constexpr int kThreads = kPatternThreads;
static_assert(kThreads == indexing::kSortThreads, "rows are sorted by as many threads");

// Adds 1, and returns what was there.
__device__ int64_t count_up(const IndexArray& array, int64_t i) {
  void* const data = const_cast<void*>(array.data);
  if (array.type == SPARSEK_INT32) return atomicAdd(static_cast<int32_t*>(data) + i, 1);
  if (array.type == SPARSEK_INT64) {
    return static_cast<int64_t>(atomicAdd(static_cast<unsigned long long*>(data) + i, 1ull));
  }
  auto* const at = static_cast<unsigned short*>(data) + i;
  unsigned short seen = *at;
  for (;;) {
    const unsigned short before = atomicCAS(at, seen, static_cast<unsigned short>(seen + 1));
    if (before == seen) return before;
    seen = before;
  }
}

// row_ptr[col + 1] = the blocks of a column. *fault is what was found.
__global__ void __launch_bounds__(kThreads) count_blocks(Given from, Made to) {
  start_dependent();
  if (static_cast<uint64_t>(*to.fault) != pattern::kNoFault) return;
  const int64_t blocks = from.row_ptr.get(from.shape.block_rows);
  for (int64_t e = blockIdx.x * int64_t{kThreads} + threadIdx.x; e < blocks; e += int64_t{kThreads} * gridDim.x) {
    count_up(to.row_ptr, from.col_idx.get(e) + 1);
  }
}

// row_ptr[col + 1] is where a column begins, and becomes where it ends. A warp a block row. *fault is what was told.
__global__ void __launch_bounds__(kThreads) place_blocks(Given from, Made to) {
  start_dependent();
  if (*to.fault != 0) return;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row < from.shape.block_rows;
       row += warps) {
    for (int64_t e = from.row_ptr.get(row) + threadIdx.x % kWarp; e < from.row_ptr.get(row + 1); e += kWarp) {
      const int64_t at = count_up(to.row_ptr, from.col_idx.get(e) + 1);
      to.col_idx.set(at, row);
      to.block_idx.set(at, from.block(e));
    }
  }
}

struct InArrays {
  IndexArray cols, blocks;
  int64_t at;
  __device__ indexing::Named get() const {
    return {static_cast<int32_t>(cols.get(at)), static_cast<int32_t>(blocks.get(at))};
  }
  __device__ void set(const indexing::Named& value) const {
    cols.set(at, value.col);
    blocks.set(at, value.block);
  }
};

// A CTA a row of A^T.
__global__ void __launch_bounds__(kThreads) sort_rows(Made to) {
  __shared__ indexing::Named shared[indexing::kSortedAtOnce];
  start_dependent();
  for (int64_t row = blockIdx.x; row < to.shape.block_rows; row += gridDim.x) {
    const int64_t begin = to.row_ptr.get(row);
    const auto count = static_cast<int32_t>(to.row_ptr.get(row + 1) - begin);
    if (count < 2) continue;
    const auto in_arrays = [&](int32_t i) { return InArrays{to.col_idx, to.block_idx, begin + i}; };
    if (count > indexing::kSortedAtOnce) {
      indexing::sort_row(count, in_arrays);
      continue;
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < count; i += kThreads) shared[i] = in_arrays(i).get();
    __syncthreads();
    indexing::sort_row(count, [&](int32_t i) { return indexing::InShared{shared + i}; });
    for (int32_t i = threadIdx.x; i < count; i += kThreads) in_arrays(i).set(shared[i]);
  }
}

}  // namespace pattern_transpose

void make_transposed(const pattern::MakeJob& job) {
  namespace k = pattern_transpose;
  const pattern::Given& from = job.from[0];
  const pattern::Made& to = job.to;
  enqueue_no_fault(to.fault, job.stream);
  enqueue_find_faults(from, to.fault, job.stream);
  const auto bytes = static_cast<size_t>((int64_t{to.shape.block_rows} + 1) * index_type_bytes(to.row_ptr.type));
  check(cudaMemsetAsync(const_cast<void*>(to.row_ptr.data), 0, bytes, static_cast<cudaStream_t>(job.stream)),
        "cudaMemsetAsync");
  launch_pattern("count of blocks", pattern_ctas(from.shape.nnzb), k::kThreads, job.stream, k::count_blocks, from, to);
  enqueue_scan(to, {/*judged=*/true, /*exclusive=*/true}, job.stream);
  launch_pattern("transpose of the index", pattern_ctas(int64_t{from.shape.block_rows} * k::kWarp), k::kThreads,
                 job.stream, k::place_blocks, from, to);
  launch_pattern("sort of the index",
                 static_cast<unsigned>(std::clamp<int64_t>(to.shape.block_rows, 1, kMostPatternCtas)), k::kThreads,
                 job.stream, k::sort_rows, to);
}

}  // namespace sparsek::cuda
