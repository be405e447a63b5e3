// SPDX-License-Identifier: Apache-2.0
#include "cuda/row_bounds.cuh"

#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace bounds_rows {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int64_t kMostCtas = 132 * 8;

// turns: warps of a row, a divisor of kWarps.
__global__ void __launch_bounds__(kThreads) kernel(BoundedRows rows, int32_t* bounds, int turns) {
  wait_for_previous_launch();
  const int warp = threadIdx.x / 32, of_cta = kWarps / turns;
  for (int64_t row = int64_t(blockIdx.x) * of_cta + warp / turns; row < rows.block_rows;
       row += int64_t(gridDim.x) * of_cta) {
    find_bounds(rows, bounds, row, warp % turns, turns, threadIdx.x % 32);
  }
}

}  // namespace bounds_rows

cudaError_t prepare_row_bounds() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, bounds_rows::kernel);
}

cudaError_t bound_rows(const BoundedRows& rows, int64_t entries, int32_t* bounds, cudaStream_t stream) {
  using namespace bounds_rows;
  int turns = 1;
  while (turns < kWarps && entries > rows.block_rows * turns * kAtOnce) turns *= 2;
  const int64_t of_cta = kWarps / turns;
  const auto ctas = static_cast<int>(std::min((rows.block_rows + of_cta - 1) / of_cta, kMostCtas));
  return launch_kernel(kernel, ctas, kThreads, 0, stream, {/*overlap=*/true}, rows, bounds, turns);
}

}  // namespace sparsek::cuda
