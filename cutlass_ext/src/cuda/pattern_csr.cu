// SPDX-License-Identifier: Apache-2.0
// The elements of blocks as CSR or COO.
#include "abi/dtype.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/pattern_launch.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace pattern_csr {

using pattern::Given;
using pattern::Made;

constexpr int kWarp = 32;
constexpr int kThreads = kPatternThreads;

// row_ptr[row + 1] = the elements of a row: those of its blocks, less what the last block column has beyond K.
__global__ void __launch_bounds__(kThreads) count_elements(Given from, Made to) {
  start_dependent();
  const BsrShape& shape = from.shape;
  const int64_t beyond = int64_t{shape.block_cols} * shape.block_k - shape.cols;
  for (int64_t row = blockIdx.x * int64_t{kThreads} + threadIdx.x; row < shape.rows;
       row += int64_t{kThreads} * gridDim.x) {
    const int64_t begin = from.row_ptr.get(row / shape.block_m), end = from.row_ptr.get(row / shape.block_m + 1);
    const bool has_last = end > begin && from.col_idx.get(end - 1) == shape.block_cols - 1;
    to.row_ptr.set(row + 1, (end - begin) * shape.block_k - (has_last ? beyond : 0));
  }
}

// A warp a row.
template <class T>
__global__ void __launch_bounds__(kThreads) write_elements(Given from, Made to) {
  start_dependent();
  const BsrShape& shape = from.shape;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  const T* const values = static_cast<const T*>(from.values);
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row < shape.rows; row += warps) {
    const int64_t entry = from.row_ptr.get(row / shape.block_m), first = to.row_ptr.get(row);
    const int64_t count = to.row_ptr.get(row + 1) - first;
    const int32_t line = static_cast<int32_t>(row % shape.block_m);
    for (int64_t i = threadIdx.x % kWarp; i < count; i += kWarp) {
      const int64_t e = entry + i / shape.block_k, j = i % shape.block_k;
      to.col_idx.set(first + i, from.col_idx.get(e) * shape.block_k + j);
      if (to.row_idx.is_there()) to.row_idx.set(first + i, row);
      if (to.values == nullptr) continue;
      static_cast<T*>(to.values)[first + i] = values[(from.block(e) * shape.block_m + line) * shape.block_k + j];
    }
  }
}

template <class T>
void write(const pattern::MakeJob& job) {
  launch_pattern("elements of blocks", pattern_ctas(job.to.shape.rows * kWarp), kThreads, job.stream, write_elements<T>,
                 job.from[0], job.to);
}

}  // namespace pattern_csr

void make_csr(const pattern::MakeJob& job) {
  namespace k = pattern_csr;
  launch_pattern("count of elements", pattern_ctas(job.to.shape.rows), k::kThreads, job.stream, k::count_elements,
                 job.from[0], job.to);
  enqueue_scan(job.to, {}, job.stream);
  switch (dtype_bytes(job.dtype)) {
    case 2:
      return k::write<uint16_t>(job);
    case 4:
      return k::write<uint32_t>(job);
    default:
      return k::write<uint64_t>(job);
  }
}

}  // namespace sparsek::cuda
