// SPDX-License-Identifier: Apache-2.0
#include "cuda/add_row_sums.h"

#include <algorithm>

#include "cuda/chunk_args.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/epilogue.cuh"
#include "cuda/epilogue_fp64.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {
// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace adding {

constexpr int kRowSumThreads = 128;
constexpr int kMostCtas = 1 << 15;

// The chunk in which the first block row of a chunk began, or -1 if it began there, or ends in a later one.
__device__ inline int first_chunk(const RowChunks& rows, int at, const RowChunk& chunk) {
  if (chunk.row_begin >= chunk.row_end) return -1;
  const int begin = rows.row_ptr[chunk.row_begin], end = rows.row_ptr[chunk.row_begin + 1];
  const int end_of_chunk = chunk.entry_end < 0 ? ~chunk.entry_end : chunk.entry_end;
  if (begin >= chunk.entry_begin || end > end_of_chunk) return -1;
  // The last chunk that begins at that entry or before it; chunks are in their order.
  int first = 0, beyond = at;
  while (beyond - first > 1) {
    const int middle = first + (beyond - first) / 2;
    if (rows.chunks[middle].entry_begin <= begin) {
      first = middle;
    } else {
      beyond = middle;
    }
  }
  return first;
}

// Each CTA has every so-manieth chunk; its threads have elements of the block row.
template <class Number>
__global__ void __launch_bounds__(kRowSumThreads)
    add_row_sums_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  const int64_t pitch = int64_t(rows.lanes.panels) * rows.lanes.columns, part = args.block_m * pitch;
  wait_for_previous_launch();
  for (int at = blockIdx.x; at < rows.count; at += gridDim.x) {
    const RowChunk chunk = rows.chunks[at];
    const int first = first_chunk(rows, at, chunk);
    if (first < 0) continue;
    for (int64_t i = threadIdx.x; i < args.block_m * args.n; i += kRowSumThreads) {
      const int64_t m = i / args.n, n = i % args.n, row = int64_t(chunk.row_begin) * args.block_m + m;
      if (row >= args.rows) break;
      const Number* const sums = static_cast<const Number*>(rows.sums) + m * pitch + n;
      Number sum = sums[(int64_t(first) * 2 + 1) * part];
#pragma unroll 8
      for (int p = first + 1; p <= at; ++p) sum += sums[int64_t(p) * 2 * part];
      write_element(args, row, n, sum);
    }
  }
}

}  // namespace adding

namespace {

auto* kernel_for(bool fp64) { return fp64 ? adding::add_row_sums_kernel<double> : adding::add_row_sums_kernel<float>; }

}  // namespace

cudaError_t prepare_add_row_sums(bool fp64) {
  cudaFuncAttributes unused;
  return cudaFuncGetAttributes(&unused, kernel_for(fp64));
}

cudaError_t add_row_sums(const LaunchArgs& args, bool fp64) {
  return launch_kernel(kernel_for(fp64), std::min(args.rows_in_chunks->count, adding::kMostCtas),
                       adding::kRowSumThreads, 0, args.stream, {/*overlap=*/true}, args, *args.rows_in_chunks);
}

}  // namespace sparsek::cuda
