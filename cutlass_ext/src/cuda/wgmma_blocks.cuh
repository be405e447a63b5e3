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
#include "cuda/ring_kernel.cuh"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"

namespace sparsek::cuda {
namespace wgmma_blocks_kernel {

template <int Slots, int Stages, int Ctas>
struct Mainloop {
  static constexpr int kSlots = Slots, kStages = Stages, kCtas = Ctas;
  static constexpr bool kMaySplit = wgmma_blocks_kernel::kMaySplit;
  static constexpr NanRule kNan = NanRule::kNone;
  static constexpr int kChunkBytes = wgmma_blocks_kernel::kChunkBytes;
  static constexpr int kTileReaders = 1;
  static constexpr int kFullArrivals = 1;
  static constexpr int kProducerRegisters = 72, kConsumerRegisters = 216;
  using Params = wgmma_blocks_kernel::Params;
  using Own = wgmma_blocks_kernel::Own;

  __device__ static int stages_of(const Params& p, int entries) { return entries * p.steps; }
  __device__ static void produce(const Params& p, Storage<Slots, Stages, Ctas>& shared, int rank) {
    const int warp = threadIdx.x / 32;
    if (warp == 0 && cute::elect_one_sync()) start_loads(p, shared, rank);
    if (warp == 1) read_plan(p, shared, rank, threadIdx.x % 32);
  }
  template <class Element>
  __device__ static void add_stages(FullStages<Mainloop>& ring, int half, int stages, float (&acc)[kGroups][4]) {
    const uint32_t own_bit = kept(1u << half);
#pragma unroll 1
    for (; stages > 0; --stages, ++ring.state) {
      ring.wait();
      bool here = true;
      if constexpr (Slots > 1) here = (ring.present() & own_bit) != 0;
      if (here) {
        const uint64_t a = ring.a(), b = ring.b();
        wgmma_fence(acc);
        cute::warpgroup_arrive();
#pragma unroll
        for (int u = 0; u < kUnits; ++u) {
          wgmma_ss<Element>(acc, advanced(a, u * kUnitK * kElementBytes), advanced(b, u * kUnitBytesB));
        }
        cute::warpgroup_commit_batch();
        cute::warpgroup_wait<1>();
        wgmma_fence(acc);
        ring.release_previous();
        ring.pending = true;
      } else {
        // Stages are given back at once: the ring is what limits the loads under way.
        cute::warpgroup_wait<0>();
        ring.release_previous();
        ring.release(ring.state.stage);
        ring.pending = false;
      }
    }
  }
};

template <class Element, int Slots, int Stages, int Ctas>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  run<Element, Mainloop<Slots, Stages, Ctas>>(p);
}

}  // namespace wgmma_blocks_kernel

template <class Config>
struct WgmmaBlocksKernel {
  static_assert(Config::kTileM == wgmma_blocks_kernel::kTileM && Config::kTileN == wgmma_blocks_kernel::kTileN &&
                Config::kTileK == wgmma_blocks_kernel::kStageK);
  static constexpr int kSlots = Config::kBlockM < Config::kTileM ? Config::kTileM / Config::kBlockM : 1;
  static_assert(kSlots <= wgmma_blocks_kernel::kHalves, "a warpgroup computes one slot, or a half of one");
  using Element = typename Config::Element;
  static_assert(sizeof(Element) == wgmma_blocks_kernel::kElementBytes);
  template <int Ctas>
  static constexpr int kSharedBytes = sizeof(wgmma_blocks_kernel::Storage<kSlots, Config::kStages, Ctas>);
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
    cudaError_t error = k::describe<Element>(&p, args, k::kStageK, true);
    if (error != cudaSuccess) return error;
    p.steps = args.block_k / k::kStageK;
    const int64_t block_row_bytes = int64_t(args.block_k) * k::kElementBytes;
    error = make_tensor_map(&p.map_a, args.values,
                            {{args.block_k, args.block_m, args.nnzb > 0 ? args.nnzb : 1},
                             {block_row_bytes, block_row_bytes * args.block_m}},
                            {k::kStageK, k::kHalfRows, 1}, 128);
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
