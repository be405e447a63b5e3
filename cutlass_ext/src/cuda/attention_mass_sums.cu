// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cuda/attention_mass.h"
#include "cuda/launch.cuh"

namespace sparsek::cuda {
namespace {

constexpr int kThreads = 256;

// A thread for each block, one after the other.
__global__ void __launch_bounds__(kThreads) mass_kernel(const __grid_constant__ AttentionMassArgs args) {
  const int64_t of_head = int64_t(args.query_blocks) * args.key_blocks, count = of_head * args.heads;
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += int64_t(gridDim.x) * kThreads) {
    const int64_t head = i / of_head;
    const int query = int(i % of_head / args.key_blocks), key = int(i % args.key_blocks);
    const int row_end = min((query + 1) * args.rows, args.cells.rows);
    const int begin = key * args.columns, end = min(begin + args.columns, args.cells.columns);
    float sum = 0;
    for (int row = query * args.rows; row < row_end; ++row) {
      const float* const cells = args.cells.sums + (head * args.cells.rows + row) * args.cells.columns;
      for (int column = begin; column < end; ++column) sum += cells[column];
    }
    args.mass[i] = sum;
  }
}

}  // namespace

cudaError_t prepare_mass_sums() {
  cudaFuncAttributes loaded;
  return cudaFuncGetAttributes(&loaded, mass_kernel);
}

cudaError_t sum_mass(const AttentionMassArgs& args, cudaStream_t stream) {
  const int64_t count = int64_t{args.heads} * args.query_blocks * args.key_blocks;
  if (count == 0) return cudaSuccess;
  constexpr int64_t kMost = 1 << 16;
  const int ctas = static_cast<int>(std::min((count + kThreads - 1) / kThreads, kMost));
  return launch_kernel(mass_kernel, ctas, kThreads, 0, stream, {}, args);
}

}  // namespace sparsek::cuda
