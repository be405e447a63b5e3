// SPDX-License-Identifier: Apache-2.0
#include "cuda/stage_lists.h"

#include <algorithm>

#include "cuda/chunk_args.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace lists_stages {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kMostCtas = 132 * 8;
constexpr int kTogether = 4;  // loads of a lane that are under way
static_assert(kTogether == kFour);
constexpr uint32_t kAll = 0xffffffffu;

// A warp has a block row. An entry whose stage is not that of the entry before it is the bound of all stages between.
__global__ void __launch_bounds__(kThreads)
    bounds_kernel(const int32_t* row_ptr, const int32_t* entry_k, ListSizes sizes, StageLists to) {
  wait_for_previous_launch();
  const int lane = threadIdx.x % 32;
  for (int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32; row < sizes.block_rows;
       row += int64_t(gridDim.x) * kWarps) {
    const int begin = __ldg(row_ptr + row), end = __ldg(row_ptr + row + 1);
    int32_t* const bounds = to.bounds + row * (sizes.stages + 1);
    int last = -1;  // the stage of the entry before
#pragma unroll 1
    for (int first = begin; first < end; first += 32 * kTogether) {
      int k[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) k[i] = __ldg(entry_k + min(first + i * 32 + lane, end - 1));
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int e = first + i * 32 + lane;
        const int stage = e < end ? int(uint32_t(k[i]) / uint32_t(sizes.columns)) : -1;
        int before = __shfl_up_sync(kAll, stage, 1);
        if (lane == 0) before = last;
        for (int s = before + 1; s <= stage; ++s) bounds[s] = e;
        last = max(last, __reduce_max_sync(kAll, stage));
      }
    }
    for (int s = last + 1 + lane; s <= sizes.stages; s += 32) bounds[s] = end;
  }
}

// The rows of a quarter, a lane each, in a stage.
struct Quarter {
  int first;          // entry of the lane's row
  int elements;       // of it
  int before;         // of the rows before it
  int all;            // of the quarter
  int in_stages;      // of the quarter's stages before
  uint32_t in_block;  // elements of a block before the lane's row of it

  __device__ Quarter(const LaunchArgs& args, const ListSizes& sizes, const int32_t* bounds, int64_t row, int stage,
                     int lane) {
    const bool inside = row < args.rows;
    const uint32_t block_row = inside ? uint32_t(row) / uint32_t(args.block_m) : 0;
    in_block = (uint32_t(row) - block_row * uint32_t(args.block_m)) * uint32_t(args.block_k);
    const int32_t* const of_row = bounds + block_row * (sizes.stages + 1);
    const int begin = of_row[0], end = of_row[stage + 1];
    first = of_row[stage];
    elements = inside ? (end - first) * args.block_k : 0;
    in_stages = int(__reduce_add_sync(kAll, inside ? first - begin : 0)) * args.block_k;
    before = elements;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(kAll, before, step);
      if (lane >= step) before += other;
    }
    all = __shfl_sync(kAll, before, 31);
    before -= elements;
  }
};

// Writes a quarter's list.
__device__ void write_list(const LaunchArgs& args, const ListSizes& sizes, const Quarter& quarter, bool in_place,
                           uint32_t reciprocal, int stage, int lane, uint32_t* to) {
  const uint32_t area = uint32_t(args.block_m) * uint32_t(args.block_k);
  const auto* const values = static_cast<const uint16_t*>(args.values);
  const int padded = (quarter.all + 31) / 32 * 32;
#pragma unroll 1
  for (int base = 0; base < padded; base += 32 * kTogether) {
    int k[kTogether], row[kTogether];
    uint16_t value[kTogether];
    uint32_t column[kTogether];  // of the block
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int at = min(base + i * 32 + lane, quarter.all - 1);
      row[i] = 0;  // the last one whose elements begin at `at` or before; rows without elements come before others
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(kAll, quarter.before, row[i] + step) <= at) row[i] += step;
      }
      const uint32_t in_row = at - __shfl_sync(kAll, quarter.before, row[i]);
      const uint32_t entry = block_of(in_row, reciprocal);
      column[i] = in_row - entry * uint32_t(args.block_k);
      const uint32_t e = __shfl_sync(kAll, quarter.first, row[i]) + entry;
      const uint32_t element = __shfl_sync(kAll, quarter.in_block, row[i]) + column[i];
      k[i] = __ldg(args.entry_k + e);
      const uint32_t block = in_place ? e : uint32_t(__ldg(args.entry_block + e));
      value[i] = __ldg(values + (uint64_t(block) * area + element));
    }
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int at = base + i * 32 + lane;
      const uint32_t of_a = k[i] + column[i], of_stage = of_a - stage * sizes.columns;
      const uint32_t place = place_of(row[i], of_stage);
      // Columns behind the last one of A, of a block that reaches beyond it, add nothing.
      const uint32_t element = of_a < args.cols ? value[i] : 0;
      if (at < padded) to[base / kChunk * kChunk + lane * kFour + i] = element << 16 | place;
    }
  }
}

// The elements of the rows before, each of which lies in a list before.
__device__ inline int64_t elements_before(const LaunchArgs& args, const RowChunks& rows, int64_t row) {
  const int64_t block_row = row / args.block_m;
  const int64_t entries = __ldg(rows.row_ptr + block_row), own = __ldg(rows.row_ptr + block_row + 1) - entries;
  return (entries * args.block_m + own * (row - block_row * args.block_m)) * args.block_k;
}

// A warp has a quarter of a stage, and those of a CTA neighbouring stages.
__global__ void __launch_bounds__(kThreads)
    lists_kernel(LaunchArgs args, RowChunks rows, ListSizes sizes, StageLists to, uint32_t reciprocal) {
  wait_for_previous_launch();
  const int lane = threadIdx.x % 32, ctas_of_quarter = (int(sizes.stages) + kWarps - 1) / kWarps;
  const int64_t at = blockIdx.x / ctas_of_quarter;  // of all quarters
  const int stage = blockIdx.x % ctas_of_quarter * kWarps + threadIdx.x / 32;
  if (stage >= sizes.stages) return;
  const int64_t first_row = at * kQuarterRows;
  const Quarter quarter(args, sizes, to.bounds, first_row + lane, stage, lane);
  const int64_t before = first_row < args.rows ? elements_before(args, rows, first_row) : 0;
  const auto begin = int32_t(first_chunk(before + quarter.in_stages, at * sizes.stages + stage));
  if (lane == 0) {
    to.lists[(at / kQuarters * sizes.stages + stage) * kQuarters + at % kQuarters] = {begin, quarter.all};
  }
  if (quarter.all == 0) return;
  const bool in_place = __ldg(&rows.chunks->entry_end) >= 0;
  write_list(args, sizes, quarter, in_place, reciprocal, stage, lane, to.elements + int64_t(begin) * kChunk);
}

}  // namespace lists_stages

cudaError_t prepare_stage_lists() {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, lists_stages::bounds_kernel);
  return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, lists_stages::lists_kernel) : error;
}

cudaError_t list_stages(const LaunchArgs& args, const ListSizes& sizes, const StageLists& to) {
  using namespace lists_stages;
  const RowChunks& rows = *args.rows_in_chunks;
  const int64_t ctas = std::min<int64_t>((sizes.block_rows + kWarps - 1) / kWarps, kMostCtas);
  const cudaError_t error = launch_kernel(bounds_kernel, static_cast<int>(ctas), kThreads, 0, args.stream,
                                          {/*overlap=*/true}, rows.row_ptr, args.entry_k, sizes, to);
  if (error != cudaSuccess) return error;
  return launch_kernel(lists_kernel,
                       static_cast<int>(sizes.groups * kQuarters * ((sizes.stages + kWarps - 1) / kWarps)), kThreads, 0,
                       args.stream, {/*overlap=*/true}, args, rows, sizes, to, reciprocal_of(args.block_k));
}

}  // namespace sparsek::cuda
