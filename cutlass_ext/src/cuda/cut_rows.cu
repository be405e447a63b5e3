// SPDX-License-Identifier: Apache-2.0
#include "cuda/cut_rows.h"

#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch_dependent.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace cutting {

constexpr int kThreads = 256;
constexpr int kMostCtas = 1024;

__global__ void __launch_bounds__(kThreads)
    cut_rows_kernel(CheckedIndex index, ChunkRule rule, int32_t block_k, PlanArrays::Views to) {
  // The next kernel may be a product, which reads its first chunk before it waits: it must not begin before this ends.
  wait_for_previous_launch();
  const bool good = is_good(index);
  const int64_t first = int64_t(blockIdx.x) * kThreads + threadIdx.x, step = int64_t(gridDim.x) * kThreads;
  const int32_t entries = good ? index.row_ptr[rule.block_rows] : 0;
  if (first == 0) {
    *to.entries = entries;
    *to.recomputed = 0;
  }
  for (int64_t row = first; row <= rule.block_rows; row += step) to.row_ptr[row] = good ? index.row_ptr[row] : 0;
  for (int64_t e = first; e < entries; e += step) {
    to.entry_k[e] = index.col_idx[e] * block_k;
    if (index.block_idx != nullptr) to.entry_block[e] = index.block_idx[e];
  }
  for (int64_t chunk = first; chunk < rule.count; chunk += step) {
    if (good) {
      to.chunks[chunk] = row_chunk(rule, index.row_ptr, chunk, index.block_idx == nullptr);
    } else {
      const auto row = [&](int64_t at) { return static_cast<int32_t>(rule.block_rows * at / rule.count); };
      to.chunks[chunk] = {row(chunk), row(chunk + 1), 0, 0};
    }
  }
}

}  // namespace cutting

void cut_rows(const CheckedIndex& index, const ChunkRule& rule, int32_t block_k, const PlanArrays::Views& to,
              cudaStream_t stream) {
  const int64_t threads = std::max<int64_t>(rule.block_rows + 1, rule.count);
  const auto ctas = static_cast<unsigned>(
      std::min<int64_t>((threads + cutting::kThreads - 1) / cutting::kThreads, cutting::kMostCtas));
  launch_dependent("cut_rows", cutting::cut_rows_kernel, dim3(ctas), cutting::kThreads, 0, stream, index, rule, block_k,
                   to);
}

}  // namespace sparsek::cuda
