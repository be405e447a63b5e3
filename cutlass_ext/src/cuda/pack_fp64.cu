// SPDX-License-Identifier: Apache-2.0
// A CTA writes a part of the strips of a row group: it marks which of their units of 8 rows have a block, clears these,
// and writes the elements of the blocks to their places.
#include "cuda/pack_fp64.h"

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/part_elements.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace packs_fp64 {

constexpr int kThreads = 512, kWarps = kThreads / 32;
constexpr int kUnitRows = 8, kUnits = kStripRows / kUnitRows, kRowBytes = kStripColumns * 8;
constexpr int kUnitBytes = kUnitRows * kRowBytes;
constexpr int kAtOnce = 4;  // loads of a lane, or rows of a warp, that are under way

struct Shared {
  int2 entries[kStripRows];         // of each block row
  uint32_t units[kMostPartStrips];  // of each strip, bit u: unit u has a block
};
static_assert(kStripRows <= kThreads && kMostPackedBlock <= kLeastPartStrips * kStripColumns);

// The rows and columns that a CTA writes.
struct Part : PartOfRows {
  int64_t first_strip;
  int strips;

  __device__ Part(const LaunchArgs& args, const StripSizes& sizes)
      : PartOfRows(args, uint32_t(sizes.parts), kStripRows, int(sizes.part_strips) * kStripColumns),
        first_strip(part * sizes.part_strips),
        strips(int(min(sizes.part_strips, sizes.strips - first_strip))) {}
};

__device__ void mark_units(const LaunchArgs& args, const Part& part, Shared& shared) {
  const int lane = threadIdx.x % 32;
  for (int row = threadIdx.x / 32; row < part.block_rows; row += kWarps) {
    const int first = row * args.block_m - part.before;  // row of the group
    const int begin = max(first, 0) / kUnitRows, last = (min(first + args.block_m, part.rows) - 1) / kUnitRows;
    const uint32_t units = (2u << last) - (1u << begin);
    const int2 entries = shared.entries[row];
    for (int e = entries.x + lane; e < entries.y; e += 32 * kAtOnce) {
      int k[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) k[i] = __ldg(args.entry_k + min(e + 32 * i, entries.y - 1));
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

// Says how many strips of the part have a block. By one warp.
__device__ int count_strips(const StripSizes& sizes, const StripMemory& to, const Part& part, const Shared& shared) {
  int own = 0;
  for (int s = threadIdx.x; s < part.strips; s += 32) own += shared.units[s] != 0;
  const int count = __reduce_add_sync(0xffffffffu, own);
  int32_t* const counts = to.counts + part.group * sizes.parts;
  if (threadIdx.x == 0) *reinterpret_cast<volatile int32_t*>(counts + part.part) = count + 1;
  return count;
}

// By one warp.
__device__ void list_strips(const StripSizes& sizes, const StripMemory& to, const Part& part, const Shared& shared,
                            int count) {
  const int lane = threadIdx.x;
  int place = strips_before(to.counts + part.group * sizes.parts, part.part);
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

__device__ void write_elements(const LaunchArgs& args, char* tiles, const Part& part, bool in_place,
                               const Shared& shared) {
  each_element<kWarps, kAtOnce, double>(args, part, in_place, shared.entries, [&](int row, int column, double value) {
    const int strip = column / kStripColumns, c = column % kStripColumns;
    const int at = row * kRowBytes + ((c / 2 ^ row % 8) << 4) + c % 2 * 8;
    *reinterpret_cast<double*>(tiles + strip * kStripBytes + at) = value;
  });
}

__global__ void __launch_bounds__(kThreads) kernel(LaunchArgs args, RowChunks rows, StripSizes sizes, StripMemory to) {
  __shared__ Shared shared;
  const Part part(args, sizes);
  wait_for_previous_launch();
  if (int(threadIdx.x) < part.block_rows) {
    shared.entries[threadIdx.x] = part.entries(args, to.bounds, sizes.parts, threadIdx.x);
  }
  for (int s = threadIdx.x; s < part.strips; s += kThreads) shared.units[s] = 0;
  __syncthreads();
  mark_units(args, part, shared);
  __syncthreads();
  char* const tiles = to.tiles + (part.group * sizes.strips + part.first_strip) * kStripBytes;
  const int count = threadIdx.x < 32 ? count_strips(sizes, to, part, shared) : 0;
  clear_units(tiles, part, shared);
  __syncthreads();  // what is cleared is not written yet
  // Entries of blocks whose values are in their places name no blocks.
  write_elements(args, tiles, part, __ldg(&rows.chunks->entry_end) >= 0, shared);
  // Last, since it may wait for the parts before.
  if (threadIdx.x < 32) list_strips(sizes, to, part, shared, count);
}

}  // namespace packs_fp64

cudaError_t prepare_pack_fp64() {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, packs_fp64::kernel);
  return error == cudaSuccess ? prepare_row_bounds() : error;
}

cudaError_t pack_fp64(const LaunchArgs& args, const StripSizes& sizes, const StripMemory& to) {
  const RowChunks& rows = *args.rows_in_chunks;
  cudaError_t error = cudaMemsetAsync(to.counts, 0, static_cast<size_t>(sizes.count_bytes()), args.stream);
  if (error != cudaSuccess) return error;
  const auto columns = static_cast<uint32_t>(sizes.part_strips * kStripColumns);
  error = bound_rows({rows.row_ptr, args.entry_k, sizes.block_rows, columns, sizes.parts}, args.nnzb, to.bounds,
                     args.stream);
  if (error != cudaSuccess) return error;
  return launch_kernel(packs_fp64::kernel, static_cast<int>(sizes.groups * sizes.parts), packs_fp64::kThreads, 0,
                       args.stream, {/*overlap=*/true}, args, rows, sizes, to);
}

}  // namespace sparsek::cuda
