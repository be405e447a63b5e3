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

constexpr int kRowSumThreads = 128, kLanes = 32;
constexpr int kAtOnce = 8;  // loads of a thread, before it adds them up one after the other
constexpr int kMostCtas = 1 << 15;
// A row that lies in so many chunks is a long one, and by so many turns of a CTA's threads several CTAs add it up: of a
// power law the longest lies in hundreds, and one CTA would take longer for it than all that was multiplied before.
constexpr int kLongRow = 9, kManyTurns = 4, kMostSlices = 64;

// The chunk in which the first block row of a chunk began, or -1 if it began there, or ends in a later one.
__device__ inline int first_chunk(const RowChunks& rows, int at, const RowChunk& chunk) {
  if (chunk.row_begin >= chunk.row_end) return -1;
  const int begin = rows.row_ptr[chunk.row_begin], end = rows.row_ptr[chunk.row_begin + 1];
  const int end_of_chunk = chunk.entry_end < 0 ? ~chunk.entry_end : chunk.entry_end;
  if (begin >= chunk.entry_begin || end > end_of_chunk) return -1;
  // The last chunk that begins at that entry or before it; chunks are in their order. Most often it is the one before,
  // so it is looked for from there on backwards, in steps that double.
  int first = at - 1, beyond = at;
  for (int back = 1; first > 0 && rows.chunks[first].entry_begin > begin; back *= 2) {
    beyond = first;
    first = max(0, first - back);
  }
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

// Of the elements of a block row, every step-th: the sums of the chunks from the one in which it begins to the one in
// which it ends. Sums of a pass are few enough for 32 bits (CudaPlan::columns_of_pass).
template <class Number>
__device__ inline void add_row(const LaunchArgs& args, const RowChunks& rows, int block_row, int first, int last,
                               int from, int step) {
  const int columns = static_cast<int>(args.n), pitch = rows.lanes.panels * rows.lanes.columns;
  const int64_t of_chunk = int64_t{2} * args.block_m * pitch;
  for (int i = from; i < args.block_m * columns; i += step) {
    const int m = i / columns, n = i % columns;
    const int64_t row = int64_t{block_row} * args.block_m + m;
    if (row >= args.rows) break;
    const Number* sums = static_cast<const Number*>(rows.sums) + first * of_chunk + m * pitch + n;
    Number sum = sums[of_chunk / 2];
    sums += of_chunk;
    for (int left = last - first; left > 0; left -= kAtOnce, sums += kAtOnce * of_chunk) {
      Number some[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (j < left) some[j] = sums[j * of_chunk];
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (j < left) sum += some[j];
      }
    }
    write_element(args, row, n, sum);
  }
}

// Of the first `of_short` CTAs, each group of `width` threads has every so-manieth chunk, and the short rows that end
// there, or all where there are no slices: as many threads as a row has elements, if they are fewer than a CTA's.
// Others have as many chunks as a warp has lanes: `slices` CTAs have the long rows of the same chunks, a part of their
// elements each.
template <class Number>
__global__ void __launch_bounds__(kRowSumThreads)
    add_row_sums_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows, int of_short,
                        int slices, int width) {
  constexpr unsigned kAll = 0xffffffff;
  wait_for_previous_launch();
  const bool has_long = blockIdx.x >= of_short;
  const int other = blockIdx.x - of_short, begin = has_long ? other / slices * kLanes : 0;
  const int groups = kRowSumThreads / width;
  int from = has_long ? threadIdx.x : threadIdx.x % width, step = has_long ? kRowSumThreads : width;
  int row = 0, first = -1;  // of a lane
  unsigned left = 0;
  if (has_long) {
    const int mine = begin + threadIdx.x % kLanes;
    if (mine < rows.count) {
      const RowChunk chunk = rows.chunks[mine];
      row = chunk.row_begin, first = first_chunk(rows, mine, chunk);
    }
    left = __ballot_sync(kAll, first >= 0 && mine - first + 1 >= kLongRow);
    from += other % slices * kRowSumThreads, step *= slices;
  }
  int at = has_long ? 0 : blockIdx.x * groups + threadIdx.x / width;
  while (has_long ? left != 0 : at < rows.count) {
    int of_row = row, from_chunk = first, last = at;
    if (has_long) {
      const int lane = __ffs(static_cast<int>(left)) - 1;
      left &= left - 1;
      of_row = __shfl_sync(kAll, row, lane), from_chunk = __shfl_sync(kAll, first, lane), last = begin + lane;
    } else {
      const RowChunk chunk = rows.chunks[at];
      of_row = chunk.row_begin, from_chunk = first_chunk(rows, at, chunk);
      at += of_short * groups;
      if (from_chunk < 0 || (slices > 0 && last - from_chunk + 1 >= kLongRow)) continue;
    }
    add_row<Number>(args, rows, of_row, from_chunk, last, from, step);
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
  const RowChunks& rows = *args.rows_in_chunks;
  const int64_t elements = int64_t{args.block_m} * args.n;
  const auto turns = static_cast<int>((elements + adding::kRowSumThreads - 1) / adding::kRowSumThreads);
  const int slices = turns < adding::kManyTurns ? 0 : std::min(turns, adding::kMostSlices);
  int width = 1;
  while (width < std::min<int64_t>(elements, adding::kRowSumThreads)) width *= 2;
  const int groups = adding::kRowSumThreads / width;
  const int of_short = std::min((rows.count + groups - 1) / groups, adding::kMostCtas),
            of_long = (rows.count + adding::kLanes - 1) / adding::kLanes * slices;
  return launch_kernel(kernel_for(fp64), of_short + of_long, adding::kRowSumThreads, 0, args.stream, {/*overlap=*/true},
                       args, rows, of_short, slices, width);
}

}  // namespace sparsek::cuda
