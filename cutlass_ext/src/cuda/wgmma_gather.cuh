// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_gather": wgmma for every block whose height and width are multiples of 8.
//
// A CTA computes 128 rows of C, a row group of the plan, times 256 columns. The product is cut into units: 16 columns
// of A times 16 rows of B, of one entry of the row group; a stage holds four consecutive units, of one or several
// entries. The producers gather A, 16 bytes a thread, from the blocks that the plan names for each row of the tile, and
// write zeros where a row has no block. So wgmma reads one dense tile, whatever the shape of the blocks. A unit in
// which none of a warpgroup's 64 rows has a block is skipped.
//
// Zeros times NaN or Inf are NaN. So a slab of a tile, a warp's 16 rows, is not stored where its sums have NaN, and
// such tiles are walked again when a CTA has no more tiles, or after each kRoundTiles of them: see gather_again.cuh.
//
//   A   stage (128, 64), K-major, 128-byte swizzle: by cp.async
//   B   stage (unit, chunk of 64 columns, 16, 64), N-major, 128-byte swizzle: by TMA
//   C   (M, N):(ldc, 1) through shared memory and bulk stores, or from registers: any rows, M, N, pitch, alignment;
//       the sums of a part of a tile go to the workspace instead
#pragma once

#include "cuda/dependent_launch.cuh"
#include "cuda/gather_again.cuh"
#include "cuda/gather_producer.cuh"
#include "cuda/gather_tiles.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/nan_sums.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/tensor_map.h"
#include "cuda/tma_store.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/barrier.h"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_gather_kernel {

// Waits until at most `groups` of the committed groups of wgmma are unfinished. groups: at most Most.
template <int Most>
__device__ void wait_for_all_but(int groups) {
  if constexpr (Most > 0) {
    if (groups == Most) {
      cute::warpgroup_wait<Most>();
    } else {
      wait_for_all_but<Most - 1>(groups);
    }
  } else {
    cute::warpgroup_wait<0>();
  }
}

// Computes and stores a CTA's tiles of a round, from `tile` on, which is then the first of the next one. state: the
// next stage of the ring.
template <class Element, int Slots, int Stages>
__device__ void consume_round(const Params& p, SharedStorage<Stages>& shared, RingState<Stages>& state,
                              TileCount& count, WorkTile& tile) {
  const LaunchArgs& args = p.args;
  const Slab<Slots> slab = own_slab<Slots>();
  const int warp = slab.warp, lane = slab.lane, warpgroup = warp / 4;
  const uint64_t first_a = wgmma_descriptor_a(cute::cast_smem_ptr_to_uint(shared.a) + warpgroup * 64 * kRowBytesA);
  const uint64_t first_b = wgmma_descriptor_b(cute::cast_smem_ptr_to_uint(shared.b), kChunkBytes);
  const auto release = [&](int stage) {  // after every lane has read it
    __syncwarp();
    if (lane == 0) shared.empty[stage].arrive();
  };

  do {
    prefetch_to_l1(args.slot_row + int64_t(tile.m_tile) * Slots + slab.slot(0));
    float acc[kGroups][4] = {};
    bool pending = false;  // wgmma may still read the previous stage
    for (int stages = stages_of(p, tile.entry_count); stages > 0; --stages, ++state) {
      shared.full[state.stage].wait(state.phase);
      const uint32_t present = read_by_one(&shared.present[state.stage], lane) >> warpgroup * 8;
      cutlass::arch::fence_view_async_shared();  // A was written by threads, and is read by tensor cores
      const uint64_t a = advanced(first_a, state.stage * kStageBytesA);
      const uint64_t b = advanced(first_b, state.stage * kStageBytesB);
      int groups = 0;  // committed groups of wgmma instructions
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        if (!(present >> u * 2 & 1)) continue;
        ++groups;  // one group each: ptxas serialises wgmma under different conditions that share a group
        cute::warpgroup_arrive();
        wgmma_ss<Element>(acc, advanced(a, u * kUnitK * 2), advanced(b, u * kUnitBytesB));
        cute::warpgroup_commit_batch();
      }
      wait_for_all_but<kUnits>(groups);
      // wgmma has read all of the previous stage.
      if (pending) release(state.previous());
      pending = true;
    }
    cute::warpgroup_wait<0>();
    wgmma_fence(acc);
    if (pending) release(state.previous());

    const uint32_t row[2] = {slab.row(args, tile, 0), slab.row(args, tile, 1)};  // of C
    const uint32_t first_col = panel_of(tile) * kTileN;
    uint32_t with_nan = 0;  // chunks, which are not stored yet
    if (any_nan(args, acc, row, first_col, lane) && p.multiplies_zeros) {
      with_nan = chunks_with_nan(args, acc, row, first_col, lane);
      if (lane == 0) {
        shared.round.mark(count.in_round(), tile, warp, with_nan);
        atomicAdd(args.recomputed, 1ull);
      }
    }
    if (const int place = part_of(tile); place >= 0) {
      leave_part(args, acc, place, first_col, kProducers, with_nan);
    } else if (p.by_tma && with_nan == 0) {
      store_rows_by_tma<Element>(p.map_c, alpha_of(args.epilogue), acc, shared.buffers[warp], row[0] - lane / 4,
                                 first_col, lane);
    } else {
      store_rows<Element>(args, acc, row, first_col, lane, with_nan);
    }
    tile = within<1, kMaySplit>(args, shared.tiles.next(count.place(), lane));
    ++count;
  } while (tile.m_tile != kNoTile && !count.begins_round());
}

template <class Element, int Slots, int Stages>
__device__ void consume(const Params& p, SharedStorage<Stages>& shared) {
  RingState<Stages> state;
  TileCount count;
  WorkTile tile = first_tile<1, kMaySplit>(p.args);
  while (true) {
    consume_round<Element, Slots>(p, shared, state, count, tile);
    if (p.multiplies_zeros) second_walk<Element, Slots>(p, shared, state, tile);
    if (tile.m_tile == kNoTile) break;
  }
  wait_for_stores();
}

template <class Element, int Slots, int Stages>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  if (p.args.parts.sums != nullptr) allow_dependent_launch();  // lets add_parts.cu begin on SMs that become free
  auto& shared = *reinterpret_cast<SharedStorage<Stages>*>(memory);
  shared.round.clear(threadIdx.x, kThreads);
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(32 + 1);  // arrivals: the copies of each lane, and those of B
      shared.empty[s].init(kConsumerWarps);
    }
    shared.tiles.init(kProducerWarps + kConsumerWarps);
    shared.meeting.init();
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  // The accumulators alone take 128 registers of a consumer thread; a producer holds the blocks of a stage.
  constexpr int kProducerRegisters = Slots <= 8 ? 72 : 88, kConsumerRegisters = Slots <= 8 ? 216 : 208;
  static_assert(kProducerRegisters + 2 * kConsumerRegisters <= 3 * (65536 / kThreads / 8 * 8),
                "a CTA has no more registers than at its launch");
  if (threadIdx.x < kProducers) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    produce<Slots>(p, shared);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume<Element, Slots>(p, shared);
  }
}

}  // namespace wgmma_gather_kernel

template <class Config>
struct WgmmaGatherKernel {
  static_assert(Config::kTileM == wgmma_gather_kernel::kTileM && Config::kTileN == wgmma_gather_kernel::kTileN &&
                Config::kTileK == wgmma_gather_kernel::kStageK);
  using Element = typename Config::Element;
  static constexpr int kSharedBytes = sizeof(wgmma_gather_kernel::SharedStorage<Config::kStages>);
  template <int Slots>
  static constexpr auto kKernel = wgmma_gather_kernel::kernel<Element, Slots, Config::kStages>;

  static cudaError_t prepare() {
    for (const auto kernel : {kKernel<1>, kKernel<2>, kKernel<4>, kKernel<8>, kKernel<16>}) {
      const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_gather_kernel;
    k::Params p;
    p.args = args;
    p.block_bytes = uint32_t(args.block_m) * args.block_k * 2;
    p.row_step_bytes = uint32_t(k::kRowStep) * args.block_k * 2;
    p.units_per_entry = (args.block_k + k::kUnitK - 1) / k::kUnitK;
    p.entry_step = k::kProducerWarps * k::kUnits / p.units_per_entry;
    p.part_step = k::kProducerWarps * k::kUnits % p.units_per_entry;
    p.boxes = k::BoxesOfB::of(args);
    cudaError_t error = p.boxes.make_map(&p.map_b, args, k::kUnitK, p.boxes.chunks);
    if (error != cudaSuccess) return error;
    // A unit may be half beyond its block; and a warpgroup's rows are one slot, or several.
    p.multiplies_zeros = args.block_k % k::kUnitK != 0 || args.slots > k::kWarpgroups;
    if (p.multiplies_zeros) {
      error = p.boxes.make_map(&p.map_half, args, k::kUnitK / 2, 1);
      if (error != cudaSuccess) return error;
    }
    p.by_tma =
        k::kTileM / args.slots >= kStoreRows && can_store_by_tma<Element>(args);  // a warp's rows are consecutive
    if (p.by_tma) error = make_store_map(&p.map_c, args);
    if (error != cudaSuccess) return error;
    const auto kernel = args.slots == 1   ? kKernel<1>
                        : args.slots == 2 ? kKernel<2>
                        : args.slots == 4 ? kKernel<4>
                        : args.slots == 8 ? kKernel<8>
                                          : kKernel<16>;
    return launch_kernel(kernel, args.workers, k::kThreads, kSharedBytes, args.stream, {}, p);
  }
};

template <class Config>
constexpr KernelOps wgmma_gather_ops() {
  using K = WgmmaGatherKernel<Config>;
  return {&K::prepare,
          &K::launch,
          /*ctas_per_sm=*/1,
          /*tensor_cores=*/true,
          /*tma_b=*/true,
          /*any_rows=*/true,
          /*align_values=*/16,
          /*any_epilogue=*/true,
          /*most_cluster=*/1,
          /*may_split=*/wgmma_gather_kernel::kMaySplit,
          /*takes_tiles=*/true};
}

}  // namespace sparsek::cuda
