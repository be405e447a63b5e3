// SPDX-License-Identifier: Apache-2.0
#include "cuda/pack_a.h"

#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "plan/work_tile.h"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace packs_a {

constexpr int kThreads = 256;
constexpr int kVector = 8;                        // elements of 16 bytes
constexpr int kVectors = kPackColumns / kVector;  // of a row of a stage
constexpr int kRowsAtOnce = kThreads / kVectors;

constexpr int kRows = kPackRows / kRowsAtOnce;  // of a thread

template <int Elements>
struct Word;
template <>
struct Word<1> {
  using Type = uint16_t;
};
template <>
struct Word<2> {
  using Type = uint32_t;
};
template <>
struct Word<4> {
  using Type = uint2;
};
template <>
struct Word<8> {
  using Type = uint4;
};

// The eight columns of a stage that a thread copies, as pieces of a row that lie in one block each. Piece: elements; it
// divides the width of blocks, and pieces are aligned together.
template <int Piece>
struct Columns {
  static constexpr int kPieces = kVector / Piece;
  int vector;
  bool used;
  int32_t entry[kPieces];     // of the stage; beyond all entries where there is no column
  int32_t in_block[kPieces];  // column

  __device__ Columns(const PackSizes& sizes) : vector(threadIdx.x % kVectors) {
    used = vector * kVector < sizes.units * kPackUnit;
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      const int at = vector * kVector + i * Piece;
      entry[i] = at < sizes.columns() ? at / sizes.block_k : INT32_MAX / 2;
      in_block[i] = at % sizes.block_k;
    }
  }
};

// The rows of a row group that a thread copies: the slot of each, and its row in the block.
struct Rows {
  int slot[kRows];
  uint32_t in_block[kRows];

  __device__ Rows(const LaunchArgs& args, int m_tile) {
    const int slot_rows = kPackRows / args.slots;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = threadIdx.x / kVectors + r * kRowsAtOnce;
      slot[r] = row / slot_rows;
      const auto first = uint32_t(__ldg(args.slot_row + int64_t(m_tile) * args.slots + slot[r]));
      in_block[r] = (first + row % slot_rows) % uint32_t(args.block_m);
    }
  }
};

// One stage of a row group, by all threads of a CTA.
template <int Piece>
__device__ void pack_stage(const LaunchArgs& args, const PackSizes& sizes, const WorkTile& tile,
                           const Columns<Piece>& columns, const Rows& rows, int stage, char* to, uint32_t* present) {
  using Word = typename Word<Piece>::Type;
  constexpr int kPieces = Columns<Piece>::kPieces;
  __shared__ uint32_t all;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  uint32_t found = 0;
  if (columns.used) {
    union Vector {
      uint4 whole;
      Word piece[kPieces];
    } values[kRows];
    const int first_entry = stage * sizes.entries;
    const int32_t* const blocks = args.entry_block + (int64_t(tile.entry_begin) + first_entry) * args.slots;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      values[r].whole = {};
      bool any = false;
#pragma unroll
      for (int i = 0; i < kPieces; ++i) {
        if (first_entry + columns.entry[i] >= tile.entry_count) continue;
        const int32_t block = __ldg(blocks + columns.entry[i] * args.slots + rows.slot[r]);
        if (block == kNoBlock) continue;
        any = true;
        const int64_t element = (int64_t(block) * args.block_m + rows.in_block[r]) * args.block_k + columns.in_block[i];
        values[r].piece[i] = __ldg(reinterpret_cast<const Word*>(static_cast<const uint16_t*>(args.values) + element));
      }
      const int half = (threadIdx.x / kVectors + r * kRowsAtOnce) / (kPackRows / 2);
      if (any) found |= 1u << (columns.vector * kVector / kPackUnit * 2 + half);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = threadIdx.x / kVectors + r * kRowsAtOnce;
      *reinterpret_cast<uint4*>(to + row * (kPackColumns * 2) + (columns.vector ^ row % kVectors) * 16) =
          values[r].whole;
    }
  }
  found = __reduce_or_sync(0xffffffffu, found);
  if (threadIdx.x % 32 == 0 && found != 0) atomicOr(&all, found);
  __syncthreads();
  if (threadIdx.x == 0) *present = all;
}

// A row group of which a CTA packs stages, and the first of these.
struct Group {
  WorkTile tile;
  int stages, first;
};

// The CTAs take the stages of all row groups in turn, and find the row groups among the tiles.
template <int Piece>
__global__ void __launch_bounds__(kThreads) kernel(LaunchArgs args, PackSizes sizes, PackMemory to) {
  __shared__ Group found[kThreads];
  __shared__ int groups;
  wait_for_previous_launch();
  const Columns<Piece> columns(sizes);
  const int ctas = gridDim.x, cta = blockIdx.x;
  for (int base = 0; base < args.tiles_count; base += kThreads) {
    __syncthreads();
    if (threadIdx.x == 0) groups = 0;
    __syncthreads();
    const int t = base + threadIdx.x;
    if (t < args.tiles_count) {
      const WorkTile tile = args.tiles[t];
      const int stages = (tile.entry_count + sizes.entries - 1) / sizes.entries;
      const int first = (cta + ctas - int(tile.m_tile * sizes.stages_of_group % ctas)) % ctas;
      if (tile.n_tile == 0 && first < stages) found[atomicAdd(&groups, 1)] = {tile, stages, first};
    }
    __syncthreads();
    for (int g = 0; g < groups; ++g) {
      const Group group = found[g];
      const Rows rows(args, group.tile.m_tile);
      const int64_t first_stage = group.tile.m_tile * sizes.stages_of_group;
      for (int s = group.first; s < group.stages; s += ctas) {
        pack_stage(args, sizes, group.tile, columns, rows, s, to.tiles + (first_stage + s) * kPackStageBytes,
                   to.present + first_stage + s);
        __syncthreads();  // `all` is read before it is cleared
      }
    }
  }
}

}  // namespace packs_a

cudaError_t prepare_pack_a() {
  cudaFuncAttributes attributes;
  for (const auto kernel : {packs_a::kernel<1>, packs_a::kernel<2>, packs_a::kernel<4>, packs_a::kernel<8>}) {
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t pack_a(const LaunchArgs& args, const PackSizes& sizes, const PackMemory& to) {
  constexpr int64_t kCtas = 132 * 6;
  const uint64_t steps = uint64_t(args.block_k) | reinterpret_cast<uintptr_t>(args.values) / 2;
  const auto kernel = steps % 8 == 0   ? packs_a::kernel<8>
                      : steps % 4 == 0 ? packs_a::kernel<4>
                      : steps % 2 == 0 ? packs_a::kernel<2>
                                       : packs_a::kernel<1>;
  return launch_kernel(kernel, static_cast<int>(std::min(kCtas, sizes.stages())), packs_a::kThreads, 0, args.stream,
                       {/*overlap=*/true}, args, sizes, to);
}

}  // namespace sparsek::cuda
