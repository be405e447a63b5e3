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

#include "cuda/gather_again.cuh"
#include "cuda/gather_producer.cuh"
#include "cuda/gather_tiles.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/ring_kernel.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace wgmma_gather_kernel {

template <int Slots, int Stages>
struct Mainloop {
  static constexpr int kSlots = Slots, kStages = Stages, kCtas = 1;
  static constexpr Major kMajorB = Major::MN;
  static constexpr bool kAnyMajorC = false;
  static constexpr bool kMaySplit = wgmma_gather_kernel::kMaySplit;
  static constexpr NanRule kNan = NanRule::kWalk;
  static constexpr int kChunkBytes = wgmma_gather_kernel::kChunkBytes;
  static constexpr int kTileReaders = kProducerWarps;
  static constexpr int kFullArrivals = 32 + 1;  // the copies of each lane, and those of B
  // The accumulators alone take 128 registers of a consumer thread; a producer holds the blocks of a stage.
  static constexpr int kProducerRegisters = Slots <= 8 ? 72 : 88, kConsumerRegisters = Slots <= 8 ? 216 : 208;
  using Params = wgmma_gather_kernel::Params;
  using Own = wgmma_gather_kernel::Own<Stages>;

  __device__ static int stages_of(const Params& p, int entries) { return wgmma_gather_kernel::stages_of(p, entries); }
  __device__ static void produce(const Params& p, Storage<Slots, Stages>& shared, int) {
    wgmma_gather_kernel::produce(p, shared);
  }
  template <class Element>
  __device__ static void add_stages(FullStages<Mainloop>& ring, int warpgroup, int stages, float (&acc)[kGroups][4]) {
    for (; stages > 0; --stages, ++ring.state) {
      ring.wait();
      const uint32_t present = ring.present() >> warpgroup * 8;
      cutlass::arch::fence_view_async_shared();  // A was written by threads, and is read by tensor cores
      const uint64_t a = ring.a(), b = ring.b();
      int groups = 0;  // committed groups of wgmma instructions
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        if (!(present >> u * 2 & 1)) continue;
        ++groups;  // one group each: ptxas serialises wgmma under different conditions that share a group
        cute::warpgroup_arrive();
        wgmma_ss<Element>(acc, advanced(a, u * kUnitK * kElementBytes), advanced(b, u * kUnitBytesB));
        cute::warpgroup_commit_batch();
      }
      wait_for_all_but<kUnits>(groups);
      ring.release_previous();
      ring.pending = true;
    }
  }
  template <class Element>
  __device__ static void second_walk(const Params& p, Storage<Slots, Stages>& shared, RingState<Stages>& state,
                                     WorkTile& tile) {
    wgmma_gather_kernel::second_walk<Element>(p, shared, state, tile);
  }
};

template <class Element, int Slots, int Stages>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  run<Element, Mainloop<Slots, Stages>>(p);
}

}  // namespace wgmma_gather_kernel

template <class Config>
struct WgmmaGatherKernel {
  static_assert(Config::kTileM == wgmma_gather_kernel::kTileM && Config::kTileN == wgmma_gather_kernel::kTileN &&
                Config::kTileK == wgmma_gather_kernel::kStageK);
  using Element = typename Config::Element;
  static_assert(sizeof(Element) == wgmma_gather_kernel::kElementBytes);
  static constexpr int kSharedBytes = sizeof(wgmma_gather_kernel::Storage<1, Config::kStages>);
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
    // A warp's rows are consecutive where a slot has at least as many.
    cudaError_t error = k::describe<Element>(&p, args, k::kUnitK, k::kTileM / args.slots >= kStoreRows);
    if (error != cudaSuccess) return error;
    p.block_bytes = uint32_t(args.block_m) * args.block_k * k::kElementBytes;
    p.row_step_bytes = uint32_t(k::kRowStep) * args.block_k * k::kElementBytes;
    p.units_per_entry = (args.block_k + k::kUnitK - 1) / k::kUnitK;
    p.entry_step = k::kProducerWarps * k::kUnits / p.units_per_entry;
    p.part_step = k::kProducerWarps * k::kUnits % p.units_per_entry;
    // A unit may be half beyond its block; and a warpgroup's rows are one slot, or several.
    p.multiplies_zeros = args.block_k % k::kUnitK != 0 || args.slots > k::kWarpgroups;
    if (p.multiplies_zeros) {
      error = p.boxes.make_map(&p.map_half, args, k::kUnitK / 2, 1);
      if (error != cudaSuccess) return error;
    }
    const auto kernel = args.slots == 1   ? kKernel<1>
                        : args.slots == 2 ? kKernel<2>
                        : args.slots == 4 ? kKernel<4>
                        : args.slots == 8 ? kKernel<8>
                                          : kKernel<16>;
    return launch_kernel(kernel, args.workers, k::kThreads, kSharedBytes, args.stream, {/*overlap=*/true}, p);
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
