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
constexpr int kMostCtas = 1 << 15;
// Of the parts of an element, each of so many sums has every so-manieth: the sums are then added up as a tree. So the
// bits of C depend neither on the threads that share the work, nor on the number of columns.
constexpr int kSums = 8;
// A row that lies in more chunks than these is a long one: several CTAs share its elements and, where these are few,
// lanes share its parts. Of a power law the longest row lies in hundreds of chunks, and one thread for an element would
// take longer than all that was multiplied before.
constexpr int kMostParts = 32, kMostPartsOfMany = 8, kMostSlices = 64;
constexpr int kFewElements = 64, kManyElements = 4 * kRowSumThreads;

// What a launch knows of its chunks and elements.
struct RowSums {
  int of_short;    // CTAs for rows that are not long
  int width;       // threads for a block row of those
  int slices;      // CTAs that share the elements of the long rows of the same chunks
  int most_parts;  // of a row that is not long
  float of_entry;  // chunks of an entry, in rows that are cut
};

// The chunk in which the first block row of a chunk began, or -1 if it began there, or ends in a later one.
__device__ inline int first_chunk(const RowChunks& rows, int at, const RowChunk& chunk, float of_entry) {
  if (chunk.row_begin >= chunk.row_end) return -1;
  const int begin = rows.row_ptr[chunk.row_begin], end = rows.row_ptr[chunk.row_begin + 1];
  const int end_of_chunk = chunk.entry_end < 0 ? ~chunk.entry_end : chunk.entry_end;
  if (begin >= chunk.entry_begin || end > end_of_chunk) return -1;
  // The last chunk that begins at that entry or before it; chunks are in their order. Those inside a row have as many
  // entries each, so the first look is right but for rounding; from there on backwards, in steps that double.
  const float before = static_cast<float>(chunk.entry_begin - begin) * of_entry;
  int first = max(0, at - max(1, static_cast<int>(ceilf(before)))), beyond = at;
  if (first + 1 < at && rows.chunks[first + 1].entry_begin > begin) beyond = first + 1;
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

// The sums of a block row's element (m, n) in the chunks from `first` on. Sums of a pass are few enough for 32 bits
// (CudaPlan::columns_of_pass).
template <class Number>
struct Parts {
  const Number* begin;  // of the row's part in the first chunk
  int64_t of_chunk;     // numbers between those of two chunks

  __device__ Parts(const LaunchArgs& args, const RowChunks& rows, int first, int m, int n) {
    const int pitch = rows.lanes.panels * rows.lanes.columns;
    of_chunk = int64_t{2} * args.block_m * pitch;
    begin = static_cast<const Number*>(rows.sums) + first * of_chunk + m * pitch + n;
  }
  // In the first chunk the row is the last one, and in others the first.
  __device__ Number operator[](int i) const { return begin[i * of_chunk + (i == 0 ? of_chunk / 2 : 0)]; }
};

// The sum of an element's parts, of which a thread has every kShares-th, from `share` on. The shares are in lanes of
// the same warp, kLanes / kShares apart, and the first has the result.
template <class Number, int kShares>
__device__ inline Number add_parts_of(const Parts<Number>& parts, int count, int share) {
  constexpr int kOfLane = kSums / kShares;
  Number sums[kOfLane] = {};
  for (int begin = share; begin < count; begin += kSums * kShares) {
    Number some[kSums] = {};
#pragma unroll
    for (int j = 0; j < kSums; ++j) {
      const int part = begin + j * kShares;
      if (part < count) some[j] = parts[part];
    }
#pragma unroll
    for (int j = 0; j < kSums; ++j) sums[j % kOfLane] += some[j];
  }
#pragma unroll
  for (int half = kOfLane / 2; half > 0; half /= 2) {
#pragma unroll
    for (int j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
#pragma unroll
  for (int half = kLanes / 2; half >= kLanes / kShares; half /= 2) sums[0] += __shfl_down_sync(~0u, sums[0], half);
  return sums[0];
}

// Of the elements of a block row that lies in the chunks `first` to `last`, every step-th, by one thread each.
template <class Number>
__device__ inline void add_row(const LaunchArgs& args, const RowChunks& rows, int block_row, int first, int last,
                               int from, int step) {
  const int columns = static_cast<int>(args.n);
  for (int i = from; i < args.block_m * columns; i += step) {
    const int m = i / columns, n = i % columns;
    const int64_t row = int64_t{block_row} * args.block_m + m;
    if (row >= args.rows) break;
    const Parts<Number> parts(args, rows, first, m, n);
    write_element(args, row, n, add_parts_of<Number, 1>(parts, last - first + 1, 0));
  }
}

// The same for a long row, by warps. kShares lanes share the parts of an element.
template <class Number, int kShares>
__device__ inline void add_long_row(const LaunchArgs& args, const RowChunks& rows, int block_row, int first, int last,
                                    int warp, int warps) {
  constexpr int kElements = kLanes / kShares;
  const int columns = static_cast<int>(args.n), elements = args.block_m * columns, lane = threadIdx.x % kLanes;
  for (int of_warp = warp * kElements; of_warp < elements; of_warp += warps * kElements) {
    const int i = min(of_warp + lane % kElements, elements - 1), m = i / columns, n = i % columns;
    const Parts<Number> parts(args, rows, first, m, n);
    const Number sum = add_parts_of<Number, kShares>(parts, last - first + 1, lane / kElements);
    const int64_t row = int64_t{block_row} * args.block_m + m;
    if (lane < kElements && of_warp + lane < elements && row < args.rows) write_element(args, row, n, sum);
  }
}

// The first `of_short` CTAs: each group of `width` threads has every so-manieth chunk, and the short rows that end
// there; as many threads as a row has elements, if they are fewer than a CTA's. Others have as many chunks as a warp
// has lanes, and the long rows that end there.
template <class Number, int kShares>
__global__ void __launch_bounds__(kRowSumThreads, 6)
    add_row_sums_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows,
                        const __grid_constant__ RowSums launch) {
  wait_for_previous_launch();
  if (blockIdx.x < launch.of_short) {
    const int groups = kRowSumThreads / launch.width;
    for (int at = blockIdx.x * groups + threadIdx.x / launch.width; at < rows.count; at += launch.of_short * groups) {
      const RowChunk chunk = rows.chunks[at];
      const int first = first_chunk(rows, at, chunk, launch.of_entry);
      if (first < 0 || at - first >= launch.most_parts) continue;
      add_row<Number>(args, rows, chunk.row_begin, first, at, threadIdx.x % launch.width, launch.width);
    }
    return;
  }
  const int other = blockIdx.x - launch.of_short, begin = other / launch.slices * kLanes;
  const int mine = begin + threadIdx.x % kLanes;
  int row = 0, first = -1;  // of a lane
  if (mine < rows.count) {
    const RowChunk chunk = rows.chunks[mine];
    row = chunk.row_begin, first = first_chunk(rows, mine, chunk, launch.of_entry);
  }
  const int warps = kRowSumThreads / kLanes * launch.slices,
            warp = other % launch.slices * (kRowSumThreads / kLanes) + threadIdx.x / kLanes;
  for (unsigned left = __ballot_sync(~0u, first >= 0 && mine - first >= launch.most_parts); left != 0;
       left &= left - 1) {
    const int lane = __ffs(static_cast<int>(left)) - 1, last = begin + lane;
    const int of_row = __shfl_sync(~0u, row, lane), from_chunk = __shfl_sync(~0u, first, lane);
    add_long_row<Number, kShares>(args, rows, of_row, from_chunk, last, warp, warps);
  }
}

}  // namespace adding

namespace {

template <class Number>
auto* kernel_for(bool few) {
  return few ? adding::add_row_sums_kernel<Number, adding::kSums> : adding::add_row_sums_kernel<Number, 1>;
}
auto* kernel_for(bool fp64, bool few) { return fp64 ? kernel_for<double>(few) : kernel_for<float>(few); }

}  // namespace

cudaError_t prepare_add_row_sums(bool fp64) {
  for (const bool few : {false, true}) {
    cudaFuncAttributes unused;
    if (const cudaError_t status = cudaFuncGetAttributes(&unused, kernel_for(fp64, few)); status != cudaSuccess) {
      return status;
    }
  }
  return cudaSuccess;
}

cudaError_t add_row_sums(const LaunchArgs& args, bool fp64) {
  const RowChunks& rows = *args.rows_in_chunks;
  const int64_t elements = int64_t{args.block_m} * args.n;
  adding::RowSums launch = {};
  launch.width = 1;
  while (launch.width < std::min<int64_t>(elements, adding::kRowSumThreads)) launch.width *= 2;
  const int groups = adding::kRowSumThreads / launch.width;
  launch.of_short = std::min((rows.count + groups - 1) / groups, adding::kMostCtas);
  launch.slices = static_cast<int>(
      std::min<int64_t>((elements + adding::kRowSumThreads - 1) / adding::kRowSumThreads, adding::kMostSlices));
  launch.most_parts = elements < adding::kManyElements ? adding::kMostParts : adding::kMostPartsOfMany;
  launch.of_entry = static_cast<float>(rows.count) / static_cast<float>(args.nnzb + rows.block_rows);
  const int of_long = (rows.count + adding::kLanes - 1) / adding::kLanes * launch.slices;
  return launch_kernel(kernel_for(fp64, elements <= adding::kFewElements), launch.of_short + of_long,
                       adding::kRowSumThreads, 0, args.stream, {/*overlap=*/true}, args, rows, launch);
}

}  // namespace sparsek::cuda
