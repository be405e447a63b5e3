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
//   A   stage (half, 64, 64), 128-byte swizzle, K-major, or M-major as blocks of A^T lie: by TMA, a box for each half
//   B   stage, 128-byte swizzle: by TMA; N-major (chunk of 64 columns, 64, 64), one box where N is a multiple of 64;
//       K-major (256 columns, 64), one box
//   C   (M, N):(ldc, 1) or :(1, ldc) through shared memory and bulk stores, or from registers: any rows, M, N, pitch,
//       alignment
#pragma once

#include <cuda.h>

#include <type_traits>

#include "cuda/block_loader.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/ring_kernel.cuh"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"

namespace sparsek::cuda {
namespace wgmma_blocks_kernel {

// How A and B lie.
template <Major A, Major B, int Words = 1>
struct Majors {
  static constexpr Major kA = A, kB = B;
  static constexpr int kWords = Words;  // of 16 bits in an element
};
using RowMajor = Majors<Major::K, Major::MN>;

template <int Slots, int Stages, int Ctas, class Of, bool AnyMajorC>
struct Mainloop {
  static constexpr int kSlots = Slots, kStages = Stages, kCtas = Ctas;
  static constexpr Major kMajorA = Of::kA, kMajorB = Of::kB;
  static constexpr int kWords = Of::kWords;
  static constexpr bool kAnyMajorC = AnyMajorC;
  static constexpr bool kMaySplit = wgmma_blocks_kernel::kMaySplit;
  static constexpr NanRule kNan = NanRule::kNone;
  static constexpr int kChunkBytes = wgmma_blocks_kernel::kChunkBytes;
  static constexpr int kTileReaders = 1;
  static constexpr int kFullArrivals = 1;
  static constexpr int kProducerRegisters = 72, kConsumerRegisters = 216;
  using Params = wgmma_blocks_kernel::Params;
  using Own = wgmma_blocks_kernel::Own;

  __device__ static int stages_of(const Params& p, int entries) { return entries * p.steps; }
  __device__ static void produce(const Params& p, SharedStorage<Mainloop>& shared, int rank) {
    const int warp = threadIdx.x / 32;
    if (warp == 0 && cute::elect_one_sync()) start_loads(p, shared, rank);
    if (warp == 1) read_plan(p, shared, rank, threadIdx.x % 32);
  }
  template <class Element>
  __device__ static void add_stages(FullStages<Mainloop>& ring, int half, int stages, float (&acc)[kGroups][4]) {
    // From a unit of a stage to the next.
    constexpr int kUnitOfRow = kUnitK * kElementBytes;
    constexpr int kUnitA = kMajorA == Major::K ? kUnitOfRow : kUnitK * kRowBytesA;
    constexpr int kUnitB = kMajorB == Major::K ? kUnitOfRow : kUnitBytesB;
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
          wgmma_ss<Element, kMajorB, kMajorA>(acc, advanced(a, u * kUnitA), advanced(b, u * kUnitB));
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
  run<Element, Mainloop<Slots, Stages, Ctas, RowMajor, false>>(p);
}

// C may be M-major, as LaunchArgs say. Not so A and B: ptxas serialises wgmma where several main loops add to the same
// sums.
template <class Element, int Slots, int Stages, int Ctas, class Of>
__global__ void __launch_bounds__(kThreads, 1) any_major_kernel(const __grid_constant__ Params p) {
  run<Element, Mainloop<Slots, Stages, Ctas, Of, true>>(p);
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
  static constexpr int kSharedBytes =
      sizeof(ring_kernel::SharedStorage<
             wgmma_blocks_kernel::Mainloop<kSlots, Config::kStages, Ctas, wgmma_blocks_kernel::RowMajor, false>>);
  template <int Ctas>
  static constexpr auto kKernel = wgmma_blocks_kernel::kernel<Element, kSlots, Config::kStages, Ctas>;
  // By [A is M-major][B is K-major].
  template <int Ctas, Major A, Major B>
  static constexpr auto kOfMajors =
      wgmma_blocks_kernel::any_major_kernel<Element, kSlots, Config::kStages, Ctas, wgmma_blocks_kernel::Majors<A, B>>;
  template <int Ctas>
  static constexpr decltype(kKernel<Ctas>) kAnyMajor[2][2] = {
      {kOfMajors<Ctas, Major::K, Major::MN>, kOfMajors<Ctas, Major::K, Major::K>},
      {kOfMajors<Ctas, Major::MN, Major::MN>, kOfMajors<Ctas, Major::MN, Major::K>}};

  template <int Ctas>
  static cudaError_t prepare_for() {
    constexpr auto& any = kAnyMajor<Ctas>;
    for (const auto kernel : {kKernel<Ctas>, any[0][0], any[0][1], any[1][0], any[1][1]}) {
      const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<Ctas>);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  static cudaError_t prepare() {
    const cudaError_t error = prepare_for<1>();
    return error != cudaSuccess ? error : prepare_for<2>();
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_blocks_kernel;
    k::Params p;
    cudaError_t error = k::describe<Element>(&p, args, k::kStageK, true);
    if (error != cudaSuccess) return error;
    p.steps = args.block_k / k::kStageK;
    const int64_t row = args.a_m_major ? args.block_m : args.block_k;  // of a block as it lies
    const int64_t row_bytes = row * k::kElementBytes,
                  block_bytes = row_bytes * (args.a_m_major ? args.block_k : args.block_m);
    static_assert(k::kStageK == k::kHalfRows, "a box is square");
    error = make_tensor_map(&p.map_a, args.values,
                            {{row, block_bytes / row_bytes, args.nnzb > 0 ? args.nnzb : 1}, {row_bytes, block_bytes}},
                            {k::kStageK, k::kHalfRows, 1}, 128);
    if (error != cudaSuccess) return error;
    return args.panels == 1 ? launch_as<1>(p) : launch_as<2>(p);
  }

 private:
  template <int Ctas>
  static cudaError_t launch_as(const wgmma_blocks_kernel::Params& p) {
    const LaunchArgs& args = p.args;
    const bool any_major = args.a_m_major || args.b_k_major || args.c_m_major || args.epilogue.input_across;
    return launch_kernel(any_major ? kAnyMajor<Ctas>[args.a_m_major][args.b_k_major] : kKernel<Ctas>,
                         args.workers * Ctas, wgmma_blocks_kernel::kThreads, kSharedBytes<Ctas>, args.stream,
                         {/*overlap=*/true, /*cluster=*/Ctas}, p);
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
          /*most_panels=*/2,
          /*workspace_bytes=*/nullptr,
          /*takes_chunks=*/false,
          /*most_block=*/INT32_MAX,
          /*any_major=*/true};
}

}  // namespace sparsek::cuda
