// SPDX-License-Identifier: Apache-2.0
// Kernel family "few_columns": blocks of at most 32 x 32, and so few columns that reading A takes the time. A warp
// reads the blocks of a chunk (plan/row_chunks.h) one after the other, whatever the length of rows, in one of the ways
// of cuda/lane_ways.h.
//
//   A   values (nnzb, bm, bk):(bm bk, bk, 1), to shared memory by bulk copies, each warp for itself, or to registers
//   B   (K, N):(ldb, 1), read through L1 when a block has arrived
//   C   (M, N):(ldc, 1), from registers
#pragma once

#include "cuda/dependent_launch.cuh"
#include "cuda/few_columns_bundles.cuh"
#include "cuda/few_columns_fixed.cuh"
#include "cuda/few_columns_lines.cuh"
#include "cuda/few_columns_singles.cuh"
#include "cuda/few_columns_stream.cuh"
#include "cuda/few_columns_teams.cuh"
#include "cuda/few_columns_tensor.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {

constexpr int kFewColumnsThreads = 32 * kWarpsOfCta;

template <class Element, int kTileM, int kTileN, int kDepth>
constexpr int kFewColumnsCtas = ctas_of_tile(kTileM, kTileN, kDepth, kIsMixed<Element>, sizeof(Sum<Element>));

namespace few_columns {

// What a warp reads first of the plan comes to L2 while the previous kernel in the stream may still run; what that
// kernel writes is read behind this. kAllows: the next kernel may begin before this one has ended.
template <bool kAllows>
__device__ inline void begin(const LaunchArgs& args, const RowChunks& rows, int at) {
  if (at < rows.count) {
    const RowChunk chunk = read_chunk(rows, at);
    const auto prefetch = [](const void* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); };
    const int lane = threadIdx.x % 32;
    if (lane == 0) prefetch(rows.row_ptr + chunk.row_begin);
    if (lane < 4 && chunk.entry_begin + 32 * lane < args.nnzb) prefetch(args.entry_k + chunk.entry_begin + 32 * lane);
  }
  wait_for_previous_launch();
  if constexpr (kAllows) allow_dependent_launch();
}

// The turns of a CTA: the warps have a chunk each, and one panel of columns.
template <int kWarps, bool kAllows = false, class Compute>
__device__ inline void each_turn(const LaunchArgs& args, const RowChunks& rows, const Compute& compute) {
  const int turns = ctas_of(rows.count, rows.lanes, rows.lanes.panels), warp = threadIdx.x / 32;
  begin<kAllows>(args, rows, blockIdx.x / rows.lanes.panels * kWarps + warp);
#pragma unroll 1
  for (int turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const int at = turn / rows.lanes.panels * kWarps + warp;
    if (at < rows.count) compute(at, turn % rows.lanes.panels);
  }
}

// The same where `parts` parts of each warp have a chunk each, of which this thread is in that of number `part` of the
// CTA. All chunks of a panel follow each other, so that its part of B is what L2 has to hold. Of parts without a chunk,
// compute gets one beyond the last.
template <int kWarps, class Compute>
__device__ inline void each_turn_of_parts(const LaunchArgs& args, const RowChunks& rows, int parts, int part,
                                          const Compute& compute) {
  const int of_panel = ctas_of(rows.count, rows.lanes, 1), turns = of_panel * rows.lanes.panels;
  wait_for_previous_launch();
#pragma unroll 1
  for (int turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    compute(turn % of_panel * (kWarps * parts) + part, turn / of_panel);
  }
}

template <class Element, int kTileM, int kTileN, int kDepth>
__global__ void __launch_bounds__(kFewColumnsThreads, (kFewColumnsCtas<Element, kTileM, kTileN, kDepth>))
    kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  extern __shared__ __align__(16) char shared[];
  char* const own = shared + threadIdx.x / 32 * rows.lanes.shared_bytes;
  make_barriers(Ring<TypeOfA<Element>>::barriers_at(args, rows.lanes, own), rows.lanes.groups);
  Phases phases = 0;
  each_turn<kWarpsOfCta>(args, rows, [&](int at, int panel) {
    if constexpr (kTileN == 1) {
      stream_chunk<Element, kTileM, kDepth>(args, rows, at, panel, phases, own);
    } else {
      multiply_chunk<Element, kTileM, kTileN, kDepth>(args, rows, at, panel, phases, own);
    }
  });
}

template <class Share, bool kVector, bool kPlain>
__global__ void __launch_bounds__(32 * warps_of_fixed(Share::kColumns),
                                  (ctas_of_fixed(Share::kBlockM, Share::kColumns, sizeof(typename Share::Element))))
    fixed_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  extern __shared__ __align__(16) char shared[];
  char* const own = shared + threadIdx.x / 32 * rows.lanes.shared_bytes;
  using Blocks = Pipe<typename Share::Element, Share::kBlockBytes>;
  make_barriers(Blocks::barriers_at(rows.lanes, own), rows.lanes.groups);
  Phases phases = 0;
  each_turn<warps_of_fixed(Share::kColumns), true>(
      args, rows, [&](int at, int panel) { fixed_chunk<Share, kVector, kPlain>(args, rows, at, panel, phases, own); });
}

template <class Element, bool kPlain>
__global__ void __launch_bounds__(32 * kWarpsOfLines, kPlain ? kCtasOfLines : 2)
    lines_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  const int team = threadIdx.x / kLanesOfLine;
  each_turn_of_parts<kWarpsOfLines>(args, rows, kTeamsOfWarp, team, [&](int at, int panel) {
    lines_chunk<Element, lines_at_once(kPlain), kPlain>(args, rows, at, panel);
  });
}

template <class Element, int kLanes, bool kPlain>
__global__ void __launch_bounds__(32 * kWarpsOfLines, kPlain ? kCtasOfLines : 2)
    teams_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  const int parts = rows.lanes.teams, part = threadIdx.x * parts / 32;  // a part has a row of A
  each_turn_of_parts<kWarpsOfLines>(
      args, rows, parts, part, [&](int at, int panel) { teams_chunk<Element, kLanes, kPlain>(args, rows, at, panel); });
}

template <class Element, int kRowTiles, int kColumns, bool kVector, bool kPlain>
__global__ void __launch_bounds__(32 * warps_of_tensor(kRowTiles, kColumns),
                                  (kPlain ? ctas_of_tensor(kRowTiles, kColumns) : 1))
    tensor_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  constexpr bool kFew = kVector && kRowTiles == 1;  // registers
  constexpr int kWarps = warps_of_tensor(kRowTiles, kColumns), kGroups = kColumns == 1 && !kFew ? 2 : 1;
  each_turn<kWarps>(args, rows, [&](int at, int panel) {
    tensor_chunk<Element, kRowTiles, kColumns, kGroups, kWarps, kVector, kPlain>(args, rows, at, panel);
  });
}

template <class Element>
__global__ void __launch_bounds__(kFewColumnsThreads, ctas_of_singles(sizeof(Sum<Element>)))
    singles_kernel(const __grid_constant__ LaunchArgs args, const __grid_constant__ RowChunks rows) {
  __shared__ Sum<Element> products[kWarpsOfCta][kStepOfSingles];
  each_turn<kWarpsOfCta>(args, rows, [&](int at, int panel) {
    singles_chunk<Element>(args, rows, at, panel, products[threadIdx.x / 32]);
  });
}

using Kernel = void (*)(LaunchArgs, RowChunks);

// How B is read, and by kLines and kTeams C is written: anyhow; by whole vectors; as one vector.
enum class ReadB { kAny, kPlain, kVector };

template <class Element, int kTileN>
Kernel kernel_of(int tile_m, int depth) {
  switch (tile_m * 10 + depth) {
    case 11:
      return &kernel<Element, 1, kTileN, 1>;
    case 12:
      return &kernel<Element, 1, kTileN, 2>;
    case 22:
      return &kernel<Element, 2, kTileN, 2>;
    case 42:
      return &kernel<Element, 4, kTileN, 2>;
    case 13:
      return &kernel<Element, 1, kTileN, 3>;
    case 33:
      return &kernel<Element, 3, kTileN, 3>;
    case 43:
      return &kernel<Element, 4, kTileN, 3>;
    case 14:
      return &kernel<Element, 1, kTileN, 4>;
    case 24:
      return &kernel<Element, 2, kTileN, 4>;
    default:
      return &kernel<Element, 4, kTileN, 4>;
  }
}

template <class Element, int kBlock, int kColumns>
Kernel fixed_of(ReadB read) {
  constexpr FixedTile kTile = fixed_tile(kBlock, kColumns, sizeof(Element));
  using Share = FixedShare<Element, kBlock, kBlock, kTile.rows, kTile.step, kColumns>;
  if constexpr (kColumns == 1) {
    return read == ReadB::kVector ? &fixed_kernel<Share, true, true> : &fixed_kernel<Share, false, false>;
  } else {
    return read == ReadB::kPlain ? &fixed_kernel<Share, false, true> : &fixed_kernel<Share, false, false>;
  }
}

template <class Element, int kBlock>
Kernel fixed_of(int columns, ReadB read) {
  if constexpr (is_wide(kBlock, sizeof(Element))) {
    if (columns == 8) return fixed_of<Element, kBlock, 8>(read);
  }
  return columns == 1 ? fixed_of<Element, kBlock, 1>(read) : fixed_of<Element, kBlock, 4>(read);
}

// For a block of up to kBlock rows, if there is a kernel for it.
template <class Element, int kBlock = kMostFixed>
Kernel fixed_of(int block, int columns, ReadB read) {
  if constexpr (kBlock > 1) {
    if (block < kBlock) return fixed_of<Element, kBlock - 1>(block, columns, read);
  }
  if constexpr (is_fixed(kBlock, sizeof(Element))) {
    return fixed_of<Element, kBlock>(columns, read);
  } else {
    return nullptr;
  }
}

template <class Element, int kLanes = kLanesOfLine>
Kernel teams_of(int lanes, ReadB read) {
  if constexpr (kLanes > 1) {
    if (lanes < kLanes) return teams_of<Element, kLanes / 2>(lanes, read);
  }
  return read == ReadB::kPlain ? &teams_kernel<Element, kLanes, true> : &teams_kernel<Element, kLanes, false>;
}

template <class Element, int kRowTiles>
Kernel tensor_of(int columns, ReadB read) {
  if (read == ReadB::kAny) return &tensor_kernel<Element, kRowTiles, 1, false, false>;
  if (read == ReadB::kVector) return &tensor_kernel<Element, kRowTiles, 1, true, true>;
  if (columns == 1) return &tensor_kernel<Element, kRowTiles, 1, false, true>;
  return columns == 4 ? &tensor_kernel<Element, kRowTiles, 4, false, true>
                      : &tensor_kernel<Element, kRowTiles, 8, false, true>;
}

template <class Element>
Kernel tensor_of(int row_tiles, int columns, ReadB read) {
  switch (row_tiles) {
    case 1:
      return tensor_of<Element, 1>(columns, read);
    case 2:
      return tensor_of<Element, 2>(columns, read);
    case 3:
      return tensor_of<Element, 3>(columns, read);
    default:
      return tensor_of<Element, 4>(columns, read);
  }
}

// The ways that serve every block serve every type.
template <class Element>
constexpr bool kHasFixed = !kIsMixed<Element>;
template <class Element>
constexpr bool kHasTensor = !kIsMixed<Element> && sizeof(Element) == 2;

// Null where there is no such kernel.
template <class Element>
Kernel kernel_of(const LaneLayout& lanes, int block_m, ReadB read) {
  switch (lanes.way) {
    case LaneWay::kStream:
      return kernel_of<Element, 1>(lanes.tile_m, lanes.depth);
    case LaneWay::kSingles:
      return &singles_kernel<Element>;
    case LaneWay::kLines:
      return read == ReadB::kPlain ? &lines_kernel<Element, true> : &lines_kernel<Element, false>;
    case LaneWay::kTeams:
      return teams_of<Element>(lanes.column_lanes, read);
    case LaneWay::kFixed:
      if constexpr (kHasFixed<Element>) return fixed_of<Element>(block_m, lanes.tile_n, read);
      return nullptr;
    case LaneWay::kTensor:
      if constexpr (kHasTensor<Element>) return tensor_of<Element>(lanes.tile_m, lanes.tile_n, read);
      return nullptr;
    case LaneWay::kBundles:
      return kernel_of<Element, 4>(lanes.tile_m, lanes.depth);
    case LaneWay::kWindow:
    case LaneWay::kScatter:
      break;
  }
  return nullptr;
}

template <class Element>
ReadB how_to_read(const LaunchArgs& args, const LaneLayout& lanes) {
  constexpr int64_t kVectorBytes = 16;
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(args.b));
  const int64_t columns = lanes.tile_n, bytes = columns * static_cast<int64_t>(sizeof(TypeOfB<Element>));
  if (args.cols % args.block_k != 0) return ReadB::kAny;
  const auto values = reinterpret_cast<uintptr_t>(args.values);
  if (lanes.way == LaneWay::kTensor && values % kVectorBytes != 0) return ReadB::kAny;
  const bool vector = lanes.way == LaneWay::kTensor ? lanes.columns == 1 : columns == 1;
  if (vector && args.n == 1 && args.ldb == 1 && address % kVectorBytes == 0) return ReadB::kVector;
  if (args.n % columns != 0 || args.ldb % columns != 0 || address % bytes != 0) return ReadB::kAny;
  if (lanes.way == LaneWay::kLines || lanes.way == LaneWay::kTeams) {
    const bool plain = few_columns::only_scales(args.epilogue, kTypeOf<TypeOfB<Element>>);
    const bool aligned = args.ldc % columns == 0 && reinterpret_cast<uintptr_t>(args.c) % bytes == 0;
    return plain && aligned ? ReadB::kPlain : ReadB::kAny;
  }
  return ReadB::kPlain;
}

}  // namespace few_columns

template <class Config>
struct FewColumnsKernel {
  using Element = typename Config::Element;

  static cudaError_t prepare() {
    LaneLayout lanes = {};
    for (lanes.tile_n = 1; lanes.tile_n <= 8; lanes.tile_n *= 2) {
      lanes.way = lanes.tile_n == 1 ? LaneWay::kStream : LaneWay::kBundles;
      for (const BlockTile& tile : kBlockTiles) {
        lanes.tile_m = tile.tile_m;
        lanes.depth = tile.depth;
        if (const cudaError_t status = prepare(lanes, 0); status != cudaSuccess) return status;
      }
      if constexpr (few_columns::kHasFixed<Element>) {
        lanes.way = LaneWay::kFixed;
        for (int block = 1; block <= kMostFixed; ++block) {
          if (const cudaError_t status = prepare(lanes, block); status != cudaSuccess) return status;
        }
      }
      if constexpr (few_columns::kHasTensor<Element>) {
        lanes.way = LaneWay::kTensor;
        for (lanes.tile_m = 1; lanes.tile_m <= kMostBlock / 8; ++lanes.tile_m) {
          if (const cudaError_t status = prepare(lanes, 0); status != cudaSuccess) return status;
        }
      }
    }
    for (const LaneWay way : {LaneWay::kLines, LaneWay::kSingles}) {
      lanes.way = way;
      if (const cudaError_t status = prepare(lanes, 1); status != cudaSuccess) return status;
    }
    lanes.way = LaneWay::kTeams;
    for (lanes.column_lanes = 1; lanes.column_lanes <= kLanesOfLine; lanes.column_lanes *= 2) {
      if (const cudaError_t status = prepare(lanes, 1); status != cudaSuccess) return status;
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    RowChunks rows = *args.rows_in_chunks;
    LaneLayout& lanes = rows.lanes;
    const auto read = few_columns::how_to_read<Element>(args, lanes);
    if (lanes.way == LaneWay::kTensor && read == few_columns::ReadB::kAny) {
      // By eight columns at a time; those beyond N are nobody's.
      lanes.panels *= lanes.tile_n;
      lanes.columns /= lanes.tile_n;
      lanes.warps = warps_of_tensor(lanes.tile_m, 1);
    }
    const int turns = ctas_of(rows.count, lanes, lanes.panels),
              workers = args.workers > 0 ? min(args.workers, turns) : turns;
    return launch_kernel(few_columns::kernel_of<Element>(lanes, args.block_m, read), workers, 32 * lanes.warps,
                         lanes.warps * lanes.shared_bytes, args.stream, {/*overlap=*/true}, args, rows);
  }

 private:
  static cudaError_t prepare(const LaneLayout& lanes, int block_m) {
    using few_columns::ReadB;
    const int bytes = lanes.way == LaneWay::kFixed ? warps_of_fixed(lanes.tile_n) * kMostSharedBytesOfFixed
                                                   : kWarpsOfCta * kMostSharedBytesOfWarp;
    for (const ReadB read : {ReadB::kAny, ReadB::kPlain, ReadB::kVector}) {
      const auto kernel = few_columns::kernel_of<Element>(lanes, block_m, read);
      if (kernel == nullptr) continue;
      const cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      if (status != cudaSuccess) return status;
    }
    return cudaSuccess;
  }
};

template <class Config>
constexpr KernelOps few_columns_ops() {
  using K = FewColumnsKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/1,
                   /*tensor_cores=*/few_columns::kHasTensor<typename K::Element>,
                   /*tma_b=*/false,
                   /*any_rows=*/false,
                   /*align_values=*/sizeof(TypeOfA<typename Config::Element>),
                   /*any_epilogue=*/true};
  ops.takes_chunks = true;
  ops.most_block = kMostBlock;
  return ops;
}

}  // namespace sparsek::cuda
