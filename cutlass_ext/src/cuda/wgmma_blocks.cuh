// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_blocks": wgmma for blocks whose height and width are multiples of 64.
//
// A CTA computes 128 rows of C, a row group of the plan, times 256 columns. One warpgroup computes the upper half of
// the rows, one the lower half. Where a tile holds two block rows of 64 (Slots = 2), each warpgroup has one of them and
// skips the entries in which that has no block, so an absent block costs no arithmetic and never reaches C.
//
// The CTAs of a cluster compute neighbouring columns of the same row group, so they need the same blocks of A: each of
// the two loads one half of the rows, and the copy engine writes them into the shared memory of both. Each loads its
// own columns of B.
//
//   A   stage (128, 64), K-major, 128-byte swizzle: by TMA, a box of (64, 64) for each half
//   B   stage (chunk of 64 columns, 64, 64), N-major, 128-byte swizzle: by TMA, one box where N is a multiple of 64
//   C   (M, N):(ldc, 1) through shared memory and bulk stores, or from registers: any rows, M, N, pitch, alignment
#pragma once

#include <cuda.h>

#include "cuda/block_loader.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/row_store.cuh"
#include "cuda/tensor_map.h"
#include "cuda/tma_store.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_blocks_kernel {

template <class Element, int Slots, int Stages, int Ctas>
__device__ void consume(const Params& p, SharedStorage<Stages, Ctas>& shared, int rank, int warp, int lane) {
  constexpr int kSlotRows = kTileM / Slots;
  const LaunchArgs& args = p.args;
  const int half = warp / 4, slot = warp * 16 / kSlotRows;
  const uint64_t first_a = wgmma_descriptor_a(cute::cast_smem_ptr_to_uint(shared.a) + half * kHalfBytesA);
  const uint64_t first_b = wgmma_descriptor_b(cute::cast_smem_ptr_to_uint(shared.b), kChunkBytes);
  RingState<Stages> state;
  const uint32_t first_full = shared_address(shared.full);
  uint32_t first_empty = shared_address(shared.empty);
  if constexpr (Ctas > 1) first_empty = cute::set_block_rank(first_empty, lane % Ctas);
  const auto release = [&](int stage) {  // after every lane has read it; to all CTAs that write into it
    __syncwarp();
    if (lane < Ctas) arrive_in_cluster<Ctas>(first_empty + stage * kBarrierBytes);
  };

  TilePlace<kTileDepth> place;
  WorkTile tile = first_tile<Ctas, kMaySplit>(args);
  while (tile.m_tile != kNoTile) {
    const int64_t* const row_of_slot = args.slot_row + int64_t(tile.m_tile) * Slots + slot;
    prefetch_to_l1(row_of_slot);
    float acc[kGroups][4] = {};
    bool pending = false;  // wgmma may still read the previous stage
#pragma unroll 1
    for (int stages = tile.entry_count * p.steps; stages > 0; --stages, ++state) {
      wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
      bool here = true;
      if constexpr (Slots > 1) here = read_by_one(&shared.present[state.stage], lane, rank) >> half & 1;
      if (here) {
        const uint64_t a = advanced(first_a, state.stage * kStageBytesA);
        const uint64_t b = advanced(first_b, state.stage * kStageBytesB);
        wgmma_fence(acc);
        cute::warpgroup_arrive();
#pragma unroll
        for (int u = 0; u < kStageK / kUnitK; ++u) {
          wgmma_ss<Element>(acc, advanced(a, u * kUnitK * 2), advanced(b, u * kUnitBytesB));
        }
        cute::warpgroup_commit_batch();
        cute::warpgroup_wait<1>();
        wgmma_fence(acc);
        if (pending) release(state.previous());
        pending = true;
      } else {
        // Stages are given back at once: the ring is what limits the loads under way.
        cute::warpgroup_wait<0>();
        if (pending) release(state.previous());
        release(state.stage);
        pending = false;
      }
    }
    cute::warpgroup_wait<0>();
    wgmma_fence(acc);
    if (pending) release(state.previous());

    const uint32_t first_row = uint32_t(__ldg(row_of_slot)) + warp * 16 % kSlotRows;
    const uint32_t first_col = (tile.n_tile * Ctas + rank) * kTileN;
    if (p.by_tma) {
      store_rows_by_tma<Element>(p.map_c, alpha_of(args.epilogue), acc, shared.buffers[warp], first_row, first_col,
                                 lane);
    } else {
      store_rows<Element>(args, acc, {first_row + lane / 4, first_row + lane / 4 + 8}, first_col, lane);
    }
    tile = within<Ctas, kMaySplit>(args, shared.tiles.next(place, lane));
    ++place;
  }
  wait_for_stores();
}

template <class Element, int Slots, int Stages, int Ctas>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<SharedStorage<Stages, Ctas>*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = Ctas == 1 ? 0 : int(cute::block_rank_in_cluster());
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kConsumerWarps * Ctas);
    }
    for (int i = 0; i < kLists; ++i) {
      shared.list_full[i].init(kLoadsOfList);
      shared.list_empty[i].init(1);
    }
    shared.tiles.init(1 + kConsumerWarps);
    cutlass::arch::fence_barrier_init();
  }
  if constexpr (Ctas == 1) {
    __syncthreads();
  } else {
    cute::cluster_sync();
  }
  constexpr int kProducerRegisters = 72, kConsumerRegisters = 216;
  if (warp < 4) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if (warp == 0 && cute::elect_one_sync()) produce<Slots>(p, shared, rank);
    if (warp == 1) read_plan<Slots>(p, shared, rank, lane);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume<Element, Slots>(p, shared, rank, warp - 4, lane);
  }
  // The shared memory of a CTA outlives the copies and arrivals of the others.
  if constexpr (Ctas > 1) {
    cute::cluster_arrive();
    cute::cluster_wait();
  }
}

}  // namespace wgmma_blocks_kernel

template <class Config>
struct WgmmaBlocksKernel {
  static_assert(Config::kTileM == wgmma_blocks_kernel::kTileM && Config::kTileN == wgmma_blocks_kernel::kTileN &&
                Config::kTileK == wgmma_blocks_kernel::kStageK);
  static constexpr int kSlots = Config::kBlockM < Config::kTileM ? Config::kTileM / Config::kBlockM : 1;
  static_assert(kSlots <= wgmma_blocks_kernel::kHalves, "a warpgroup computes one slot, or a half of one");
  using Element = typename Config::Element;
  template <int Ctas>
  static constexpr int kSharedBytes = sizeof(wgmma_blocks_kernel::SharedStorage<Config::kStages, Ctas>);
  template <int Ctas>
  static constexpr auto kKernel = wgmma_blocks_kernel::kernel<Element, kSlots, Config::kStages, Ctas>;

  static cudaError_t prepare() {
    const cudaError_t error =
        cudaFuncSetAttribute(kKernel<1>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<1>);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kKernel<2>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<2>);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_blocks_kernel;
    k::Params p;
    p.args = args;
    p.steps = args.block_k / k::kStageK;
    p.boxes = k::BoxesOfB::of(args);

    const int64_t block_row_bytes = int64_t(args.block_k) * 2;
    cudaError_t error = make_tensor_map(&p.map_a, args.values,
                                        {{args.block_k, args.block_m, args.nnzb > 0 ? args.nnzb : 1},
                                         {block_row_bytes, block_row_bytes * args.block_m}},
                                        {k::kStageK, k::kHalfRows, 1}, 128);
    if (error != cudaSuccess) return error;
    error = p.boxes.make_map(&p.map_b, args, k::kStageK, p.boxes.chunks);
    if (error != cudaSuccess) return error;
    p.by_tma = can_store_by_tma<Element>(args);
    if (p.by_tma) error = make_store_map(&p.map_c, args);
    if (error != cudaSuccess) return error;
    if (args.panels == 1) {
      return launch_kernel(kKernel<1>, args.workers, k::kThreads, kSharedBytes<1>, args.stream, {}, p);
    }
    return launch_kernel(kKernel<2>, args.workers * 2, k::kThreads, kSharedBytes<2>, args.stream,
                         {/*overlap=*/false, /*cluster=*/2}, p);
  }
};

template <class Config>
constexpr KernelOps wgmma_blocks_ops() {
  using K = WgmmaBlocksKernel<Config>;
  return {&K::prepare,
          &K::launch,
          /*ctas_per_sm=*/1,
          /*tensor_cores=*/true,
          /*tma_b=*/true,
          /*any_rows=*/true,
          /*align_values=*/16,
          /*any_epilogue=*/true,
          /*most_cluster=*/1,
          /*may_split=*/wgmma_blocks_kernel::kMaySplit,
          /*takes_tiles=*/true,
          /*most_rounds=*/1,
          /*least_elements=*/0,
          /*most_panels=*/2};
}

}  // namespace sparsek::cuda
