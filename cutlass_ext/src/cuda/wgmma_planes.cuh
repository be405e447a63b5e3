// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_planes": fp32 on tensor cores, for blocks whose height is a multiple of 8, from 128 on of 64,
// and whose width is one of 16.
//
// A and B come as three planes of bf16 each (planes.h), which plane_tile.cuh multiplies.
//
// A CTA computes 128 rows of C, a row group of the plan, times 128 columns. One warpgroup computes the upper half of
// the rows, one the lower half, and skips the entries in which its rows have no block. Where the rows of a half are of
// several blocks, some may be absent: sums that their zeros times Inf or NaN have spoilt are computed again
// (plane_nan.cuh).
//
// A stage holds 32 or 16 columns of A and as many rows of B in all planes, as they lie in memory: a bulk copy for each
// half of the rows, and one for B.
#pragma once

#include "collective/tile_queue.hpp"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/plane_nan.cuh"
#include "cuda/plane_tile.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_planes_kernel {

using namespace planes_kernel;

constexpr int kTileDepth = 4;    // of the queue of tiles
constexpr int kStagesAhead = 4;  // the next tile is taken when so many stages of this one are to be loaded

struct Params {
  LaunchArgs args;
  PlaneSizes sizes;
  PlaneMemory planes;
  int steps;        // pieces of an entry
  int parts;        // pieces of 64 rows of a block; 0: A is gathered
  int most_aside;   // parts of its sums that a tile sets aside
  int64_t steps_b;  // pieces of a panel of B
  int64_t ready;    // panels of B whose planes are there when the kernel begins
  bool aligned_b;
};

// What a consumer warp does not need while it sums up: there are no registers for it.
struct alignas(16) TileOfWarp {
  WorkTile tile;
  int number;  // of its tiles
};

// K: columns of A in a stage.
template <int K, int Stages>
struct SharedStorage {
  alignas(1024) uint8_t b[Stages][PieceBytes<K>::kB];
  alignas(1024) uint8_t a[Stages][kHalves][PieceBytes<K>::kA];
  TileQueue<kTileDepth> tiles;
  TileOfWarp tile_of_warp[kConsumerWarps];
  uint32_t present[Stages];  // bit h: half h of the rows has a block
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

// A tile beyond the product's columns has nothing to sum up.
__device__ inline WorkTile within(const LaunchArgs& args, WorkTile tile) {
  if (int64_t(tile.n_tile) * kPanelN >= args.n) tile.entry_count = 0;
  return tile;
}

// The first tile of the CTA, beyond the product's columns where it has none of its own (TileList::late).
__device__ inline WorkTile first_tile(const LaunchArgs& args) {
  WorkTile tile = load_tile(args.tiles + blockIdx.x);
  if (blockIdx.x + args.late_workers >= gridDim.x) tile.n_tile = int32_t((args.n + kPanelN - 1) / kPanelN);
  return within(args, tile);
}

// The first row of C of eight rows of a tile.
__device__ inline uint32_t row_of_c(const LaunchArgs& args, const WorkTile& tile, int row) {
  const int slot_rows = kTileM / args.slots;
  return uint32_t(args.slot_row[int64_t(tile.m_tile) * args.slots + row / slot_rows]) + row % slot_rows;
}

// One entry of a tile for each lane.
struct Entry {
  int32_t b_row = 0;
  int32_t piece[kHalves] = {};  // of A, in units of a block's width; kNoBlock: the half has no block
};

// part: of its blocks, from which each half is.
__device__ inline Entry read_entry(const Params& p, const WorkTile& tile, const int (&part)[kHalves], int entry) {
  const LaunchArgs& args = p.args;
  Entry read;
  if (entry < tile.entry_count) {
    const int64_t at = int64_t(tile.entry_begin) + entry;
    read.b_row = __ldg(args.entry_k + at);
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
      int slot = h * args.slots / kHalves;
      const int last = (h + 1) * args.slots / kHalves - 1;
      int32_t block = __ldg(args.entry_block + at * args.slots + slot);
      while (block == kNoBlock && slot < last) block = __ldg(args.entry_block + at * args.slots + ++slot);
      const int32_t number = p.parts > 0 ? block * p.parts + part[h] : int32_t(at) * kHalves + h;
      read.piece[h] = block == kNoBlock ? kNoBlock : number;
    }
  }
  return read;
}

// By a whole warp: takes tiles and starts the copies of their stages.
template <int K, int Stages>
__device__ void produce(const Params& p, SharedStorage<K, Stages>& shared, int lane) {
  const LaunchArgs& args = p.args;
  const TileList list = {args.tiles, args.tiles_count, args.tiles_taken, uint32_t(args.late_workers)};
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_present = shared_address(shared.present);
  const uint32_t first_a = shared_address(shared.a), first_b = shared_address(shared.b);
  RingState<Stages> state;
  TilePlace<kTileDepth> place, taken_place;
  WorkTile tile = first_tile(args);
  while (tile.m_tile != kNoTile) {
    int part[kHalves] = {};
    if (p.parts > 0) {
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        part[h] = int(row_of_c(args, tile, h * kPieceRows) % uint32_t(args.block_m)) / kPieceRows;
      }
    }
    const char* const panel = p.planes.b + int64_t(tile.n_tile) * p.steps_b * PieceBytes<K>::kB;
    int left = tile.entry_count * p.steps;  // stages
    const int take_at = min(left, kStagesAhead);
    const auto take_next = [&] {
      if (lane == 0) shared.tiles.publish(list, claim_tile(list), taken_place);
      ++taken_place;
      __syncwarp();
    };
    if (left == 0) take_next();
    if (tile.n_tile >= p.ready && left > 0 && lane == 0) wait_for_planes(p, tile.n_tile);
    __syncwarp();
    Entry now = read_entry(p, tile, part, lane);
#pragma unroll 1
    for (int entry = 0; entry < tile.entry_count; ++entry) {
      if (entry % 32 == 0 && entry > 0) now = read_entry(p, tile, part, entry + lane);
      const int b_row = __shfl_sync(0xffffffffu, now.b_row, entry % 32);
      const int piece[kHalves] = {__shfl_sync(0xffffffffu, now.piece[0], entry % 32),
                                  __shfl_sync(0xffffffffu, now.piece[1], entry % 32)};
      const char* from_b = panel + int64_t(b_row / K) * PieceBytes<K>::kB;
      const char* from_a[kHalves];
#pragma unroll
      for (int h = 0; h < kHalves; ++h) from_a[h] = p.planes.a + int64_t(piece[h]) * p.steps * PieceBytes<K>::kA;
      const uint32_t present = uint32_t(piece[0] != kNoBlock) | uint32_t(piece[1] != kNoBlock) << 1;
#pragma unroll 1
      for (int step = 0; step < p.steps; ++step, ++state, --left) {
        if (left == take_at) take_next();
        if (lane == 0) {
          const uint32_t full = first_full + state.stage * kBarrierBytes;
          wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
          store_word(first_present + state.stage * 4, present);
          arrive_and_expect(full, __popc(present) * PieceBytes<K>::kA + PieceBytes<K>::kB);
          copy_to_shared(first_b + state.stage * PieceBytes<K>::kB, from_b, PieceBytes<K>::kB, full);
#pragma unroll
          for (int h = 0; h < kHalves; ++h) {
            if (piece[h] == kNoBlock) continue;
            copy_to_shared(first_a + (state.stage * kHalves + h) * PieceBytes<K>::kA, from_a[h], PieceBytes<K>::kA,
                           full);
          }
        }
        __syncwarp();
        from_b += PieceBytes<K>::kB;
#pragma unroll
        for (int h = 0; h < kHalves; ++h) from_a[h] += PieceBytes<K>::kA;
      }
    }
    tile = within(args, shared.tiles.next(place, lane));
    ++place;
  }
}

// C = act(alpha sums + ...)
__device__ inline void store(const LaunchArgs& args, PlaneSums& sums, const RowsOfWarp& own) {
  const Epilogue& e = args.epilogue;
  const RowTile tile = {{own.row[0] + own.lane / 4, own.row[1] + own.lane / 4},
                        own.first_col,
                        int(min(int64_t(kPanelN), args.n - own.first_col)),
                        own.lane % 4 * 2};
  if (e.beta == 0.f && e.bias_kind == BiasKind::kNone && e.activation == Activation::kNone &&
      e.dtype_c == ElementType::kFp32) {
    const float alpha = alpha_of(e);
#pragma unroll
    for (int i = 0; i < kGroups * 4; ++i) sums[i / 4][i % 4] *= alpha;
    write<float>(args, sums, tile);
  } else {
    store_any(args, sums, tile);
  }
}

// Stores a tile and takes the next one. The number of the thread is read anew, or what depends on it would be kept in
// registers from one tile to the next.
template <int K, int Stages>
__device__ WorkTile end_tile(const Params& p, SharedStorage<K, Stages>& shared, bool finite, PlaneSums& sums) {
  const LaunchArgs& args = read_here(&p)->args;
  const int thread = read_thread();
  const int lane = thread % 32, warp = (thread - (kThreads - kPlaneConsumers)) / 32;
  TileOfWarp& of_warp = shared.tile_of_warp[warp];
  const WorkTile tile = of_warp.tile;
  const int row = warp * 16;
  const RowsOfWarp own = {
      row, {row_of_c(args, tile, row), row_of_c(args, tile, row + 8)}, uint32_t(tile.n_tile) * kPanelN, lane};
  if (!finite) make_exact<K>(args, p.planes, tile, own, p.steps_b, p.aligned_b, sums);
  store(p.args, sums, own);
  const uint32_t number = of_warp.number;
  __syncwarp();
  if (lane == 0) of_warp.number = number + 1;
  return within(p.args, shared.tiles.next({int(number % kTileDepth), number / kTileDepth % 2}, lane));
}

template <int K, int Stages>
__device__ void consume(const Params& p, SharedStorage<K, Stages>& shared, int warp, int lane) {
  const LaunchArgs& args = p.args;
  RingState<Stages> state;
  if (lane == 0) shared.tile_of_warp[warp].number = 0;
  WorkTile tile = first_tile(args);
  while (tile.m_tile != kNoTile) {
    if (lane == 0) shared.tile_of_warp[warp].tile = tile;
    PlaneSums whole;
    const bool finite = sum_stages<K>(p, shared, state, tile.entry_count * p.steps, warp, lane, whole);
    __syncwarp();
    tile = end_tile(p, shared, finite, whole);
  }
}

template <int K, int Stages>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<SharedStorage<K, Stages>*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kConsumerWarps);
    }
    shared.tiles.init(1 + kConsumerWarps);
    cutlass::arch::fence_barrier_init();
  }
  // Nothing before this touches memory of other kernels.
  wait_for_previous_launch();
  __syncthreads();
  if (warp < 4) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if (warp == 0) produce(p, shared, lane);
    if (warp > 0 && p.ready < p.sizes.panels_b()) make_rest<K>(p, lane);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume(p, shared, warp - 4, lane);
  }
}

}  // namespace wgmma_planes_kernel

template <class Config>
struct WgmmaPlanesKernel {
  static_assert(Config::kTileM == wgmma_planes_kernel::kTileM && Config::kTileN == wgmma_planes_kernel::kPanelN &&
                (Config::kTileK == 32 || Config::kTileK == 16));
  static constexpr int kPieceK = Config::kTileK;
  static constexpr int kSharedBytes = sizeof(wgmma_planes_kernel::SharedStorage<kPieceK, Config::kStages>);
  static constexpr auto kKernel = wgmma_planes_kernel::kernel<kPieceK, Config::kStages>;

  static cudaError_t prepare() {
    const cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    return error == cudaSuccess ? prepare_planes() : error;
  }

  static size_t layout_bytes(const LaunchArgs& args) {
    return static_cast<size_t>(plane_sizes(args, kPieceK).bytes_a());
  }

  static cudaError_t lay_out(const LaunchArgs& args, void* to) {
    return make_planes_of_a(args, plane_sizes(args, kPieceK), to);
  }

  static size_t workspace_bytes(const LaunchArgs& args) {
    return (args.laid_out != nullptr ? 0 : layout_bytes(args)) + PlaneMemory::bytes(plane_sizes(args, kPieceK));
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_planes_kernel;
    const PlaneSizes sizes = plane_sizes(args, kPieceK);
    const PlaneMemory planes(sizes, args.workspace, args.laid_out);
    const int64_t ready = k::panels_before(args, sizes.panels_b());
    if (args.nnzb > 0) {
      const cudaError_t error = make_planes(args, sizes, planes, ready);
      if (error != cudaSuccess) return error;
    }
    const k::Params p = {args,
                         sizes,
                         planes,
                         static_cast<int>(sizes.steps()),
                         sizes.gathers() ? 0 : args.block_m / kPieceRows,
                         sizes.most_aside(),
                         sizes.steps_b(),
                         ready,
                         aligned_b(args)};
    return launch_kernel(kKernel, args.workers, k::kThreads, kSharedBytes, args.stream, {/*overlap=*/true}, p);
  }
};

template <class Config>
constexpr KernelOps wgmma_planes_ops() {
  using K = WgmmaPlanesKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/1,
                   /*tensor_cores=*/false,  // no step's error is above that of fp32: docs/notes/planes-kernel.md
                   /*tma_b=*/false,
                   /*any_rows=*/true,
                   /*align_values=*/sizeof(float),
                   /*any_epilogue=*/true};
  ops.takes_tiles = true;
  ops.workspace_bytes = &K::workspace_bytes;
  ops.layout_bytes = &K::layout_bytes;
  ops.lay_out = &K::lay_out;
  return ops;
}

}  // namespace sparsek::cuda
