// SPDX-License-Identifier: Apache-2.0
// A CTA writes a part of the strips of a row group: it marks which of their units of 8 rows have a block, clears these,
// and writes the elements of the blocks to their places.
#include "cuda/pack_fp64.h"

#include "cuda/chunk_args.h"
#include "cuda/launch.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace packs_fp64 {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kUnitRows = 8, kUnits = kStripRows / kUnitRows, kRowBytes = kStripColumns * 8;
constexpr int kUnitBytes = kUnitRows * kRowBytes;
constexpr int kAtOnce = 4;  // loads of a lane that are under way

struct Shared {
  int begin[kStripRows], end[kStripRows];  // entries of each block row that have columns in the part
  uint32_t units[kMostPartStrips];         // of each strip, bit u: unit u has a block
};

// Of entries [from, to), whose columns ascend, the first with entry_k >= k. Some are read at once, since each read
// waits for memory.
__device__ inline int first_entry(const int32_t* entry_k, int from, int to, int64_t k) {
  constexpr int kWays = 8;
  while (from < to) {
    const int step = (to - from + kWays - 1) / kWays;
    int32_t found[kWays];
#pragma unroll
    for (int i = 0; i < kWays; ++i) found[i] = __ldg(entry_k + min(from + step * (i + 1), to) - 1);
    int below = 0;
#pragma unroll
    for (int i = 0; i < kWays; ++i) below += found[i] < k;
    if (below == kWays) return to;
    to = min(from + step * (below + 1), to) - 1;
    from = min(from + step * below, to);
  }
  return from;
}

// The rows and columns that a CTA writes, of A.
struct Part {
  int64_t group, part;
  int64_t first_row, end_row, first_col, end_col, first_strip;
  int strips;
  int64_t first_block_row;
  int block_rows;  // at most kStripRows

  __device__ Part(const LaunchArgs& args, const StripSizes& sizes)
      : group(blockIdx.x / sizes.parts), part(blockIdx.x % sizes.parts) {
    first_row = group * kStripRows;
    end_row = min(first_row + kStripRows, args.rows);
    first_strip = part * sizes.part_strips;
    strips = int(min(sizes.part_strips, sizes.strips - first_strip));
    first_col = first_strip * kStripColumns;
    end_col = min(first_col + int64_t(strips) * kStripColumns, args.cols);
    first_block_row = first_row / args.block_m;
    block_rows = int((end_row - 1) / args.block_m - first_block_row + 1);
  }
};

__device__ void find_entries(const LaunchArgs& args, const RowChunks& rows, const Part& part, Shared& shared) {
  for (int i = threadIdx.x; i < 2 * part.block_rows; i += kThreads) {
    const int row = i / 2;
    const int32_t* const own = rows.row_ptr + part.first_block_row + row;
    const bool is_end = i % 2 != 0;
    // A block begins before the part where it begins block_k - 1 columns before, or fewer.
    const int64_t k = is_end ? part.end_col : part.first_col - args.block_k + 1;
    (is_end ? shared.end : shared.begin)[row] = first_entry(args.entry_k, __ldg(own), __ldg(own + 1), k);
  }
}

__device__ void mark_units(const LaunchArgs& args, const Part& part, Shared& shared) {
  const int lane = threadIdx.x % 32;
  for (int row = threadIdx.x / 32; row < part.block_rows; row += kWarps) {
    const int64_t first = (part.first_block_row + row) * args.block_m;
    const int begin = int(max(first, part.first_row) - part.first_row) / kUnitRows;
    const int last = int(min(first + args.block_m, part.end_row) - 1 - part.first_row) / kUnitRows;
    const uint32_t units = (2u << last) - (1u << begin);
    const int end = shared.end[row];
    for (int e = shared.begin[row] + lane; e < end; e += 32 * kAtOnce) {
      int k[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) k[i] = __ldg(args.entry_k + min(e + 32 * i, end - 1));
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int from = int(max(int64_t(k[i]), part.first_col) - part.first_col) / kStripColumns;
        const int to = int(min(int64_t(k[i]) + args.block_k, part.end_col) - 1 - part.first_col) / kStripColumns;
        for (int s = from; s <= to; ++s) {
          if ((shared.units[s] & units) != units) atomicOr(&shared.units[s], units);
        }
      }
    }
  }
}

// The strips of the group's parts before: their CTAs began before this one. By one warp.
__device__ int strips_before(const int32_t* counts, int64_t parts) {
  int before = 0;
  for (int64_t i = threadIdx.x; i < parts; i += 32) {
    int count;
    do {
      count = *reinterpret_cast<const volatile int32_t*>(counts + i);
    } while (count == 0);
    before += count - 1;
  }
  return __reduce_add_sync(0xffffffffu, before);
}

// By one warp.
__device__ void list_strips(const StripSizes& sizes, const StripMemory& to, const Part& part, const Shared& shared) {
  const int lane = threadIdx.x;
  int own = 0;
  for (int s = lane; s < part.strips; s += 32) own += shared.units[s] != 0;
  const int count = __reduce_add_sync(0xffffffffu, own);
  int32_t* const counts = to.counts + part.group * sizes.parts;
  if (lane == 0) *reinterpret_cast<volatile int32_t*>(counts + part.part) = count + 1;
  int place = strips_before(counts, part.part);
  if (lane == 0 && part.part == sizes.parts - 1) to.totals[part.group] = place + count;
  uint32_t* const listed = to.listed + part.group * sizes.strips;
  for (int base = 0; base < part.strips; base += 32) {
    const int s = base + lane;
    const uint32_t units = s < part.strips ? shared.units[s] : 0;
    const uint32_t all = __ballot_sync(0xffffffffu, units != 0);
    const int before = __popc(all & ((1u << lane) - 1));
    if (units != 0) listed[place + before] = uint32_t(part.first_strip + s) | units << kStripBits;
    place += __popc(all);
  }
}

__device__ void clear_units(char* tiles, const Part& part, const Shared& shared) {
  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x / 32; i < part.strips * kUnits; i += kWarps) {
    if ((shared.units[i / kUnits] >> i % kUnits & 1) == 0) continue;
    auto* const unit = reinterpret_cast<uint4*>(tiles + int64_t(i) * kUnitBytes);
#pragma unroll
    for (int v = 0; v < kUnitBytes / 16 / 32; ++v) unit[v * 32 + lane] = uint4{};
  }
}

// An element of the blocks of a block row in the part, and its place.
struct Place {
  int64_t value;  // of A's values
  int32_t at;     // byte of the part's tiles; below 0: the block has it in another part or row group
};

__device__ Place place_of(const LaunchArgs& args, const Part& part, bool in_place, int begin, int64_t first_row,
                          uint32_t i) {
  const auto width = uint32_t(args.block_k), area = uint32_t(args.block_m) * width;
  const int e = begin + int(i / area);
  const uint32_t in_block = i % area;
  const int64_t row = first_row + in_block / width;
  const int64_t column = __ldg(args.entry_k + e) + int64_t(in_block % width) - part.first_col;
  const int64_t block = in_place ? e : __ldg(args.entry_block + e);
  const bool inside = row >= 0 && row < kStripRows && column >= 0 && column < part.end_col - part.first_col;
  const int r = int(row), strip = int(column) / kStripColumns, c = int(column) % kStripColumns;
  return {block * area + in_block,
          inside ? strip * kStripBytes + r * kRowBytes + ((c / 2 ^ r % 8) << 4) + c % 2 * 8 : -1};
}

__device__ void write_elements(const LaunchArgs& args, char* tiles, const Part& part, bool in_place,
                               const Shared& shared) {
  const int lane = threadIdx.x % 32;
  for (int row = threadIdx.x / 32; row < part.block_rows; row += kWarps) {
    const int64_t first = (part.first_block_row + row) * args.block_m - part.first_row;  // of the group's rows
    const int begin = shared.begin[row];
    const auto count = uint32_t(shared.end[row] - begin) * uint32_t(args.block_m) * uint32_t(args.block_k);
    for (uint32_t i = lane; i < count; i += 32 * kAtOnce) {
      Place place[kAtOnce];
      double value[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        place[j] = place_of(args, part, in_place, begin, first, min(i + 32 * j, count - 1));
        value[j] = __ldg(static_cast<const double*>(args.values) + place[j].value);
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        if (place[j].at >= 0) *reinterpret_cast<double*>(tiles + place[j].at) = value[j];
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads) kernel(LaunchArgs args, RowChunks rows, StripSizes sizes, StripMemory to) {
  __shared__ Shared shared;
  const Part part(args, sizes);
  find_entries(args, rows, part, shared);
  for (int s = threadIdx.x; s < part.strips; s += kThreads) shared.units[s] = 0;
  __syncthreads();
  mark_units(args, part, shared);
  __syncthreads();
  char* const tiles = to.tiles + (part.group * sizes.strips + part.first_strip) * kStripBytes;
  if (threadIdx.x < 32) list_strips(sizes, to, part, shared);
  clear_units(tiles, part, shared);
  __syncthreads();  // what is cleared is not written yet
  // Entries of blocks whose values are in their places name no blocks.
  write_elements(args, tiles, part, __ldg(&rows.chunks->entry_end) >= 0, shared);
}

}  // namespace packs_fp64

cudaError_t prepare_pack_fp64() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, packs_fp64::kernel);
}

cudaError_t pack_fp64(const LaunchArgs& args, const StripSizes& sizes, const StripMemory& to) {
  const cudaError_t error = cudaMemsetAsync(to.counts, 0, static_cast<size_t>(sizes.count_bytes()), args.stream);
  if (error != cudaSuccess) return error;
  return launch_kernel(packs_fp64::kernel, static_cast<int>(sizes.groups * sizes.parts), packs_fp64::kThreads, 0,
                       args.stream, {}, args, *args.rows_in_chunks, sizes, to);
}

}  // namespace sparsek::cuda
