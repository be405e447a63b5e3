// SPDX-License-Identifier: Apache-2.0
// Kernel family "collective": CUTLASS's cooperative kernel around our block-sparse mainloop, epilogue and plan-driven
// scheduler. A config gives Element, kTileM, kTileN, kTileK, kStages and kBlockM.
//
//   A   values (bm, bk, nnzb):(bk, 1, bm bk): by TMA into stages (kTileM, kTileK), K-major, 128-byte swizzle
//   B   (N, K):(1, ldb): by TMA into stages (kTileN, kTileK), N-major, 128-byte swizzle
//   C   (M, N):(ldc, 1): see collective/sm90_bsr_epilogue.hpp
#pragma once

#include "collective/bsr_tile_scheduler.hpp"
#include "collective/sm90_bsr_epilogue.hpp"
#include "collective/sm90_bsr_mma_tma_gmma_ss.hpp"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/tensor_map.h"
#include "cuda/tma_store.cuh"
#include "cutlass/gemm/kernel/gemm_universal.hpp"

namespace sparsek::cuda {

// cutlass::device_kernel for a launch that may begin before the kernel before it in the stream has ended, which takes
// half a microsecond less of the host. Its scheduler reads memory at once, so it waits at its begin.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::MaxThreadsPerBlock, Kernel::MinBlocksPerMultiprocessor)
    collective_kernel(const __grid_constant__ typename Kernel::Params params) {
  extern __shared__ char shared[];
  wait_for_previous_launch();
  Kernel{}(params, shared);
}

template <class Config>
struct CollectiveKernel {
  using Element = typename Config::Element;
  using TileShape = cute::Shape<cute::Int<Config::kTileM>, cute::Int<Config::kTileN>, cute::Int<Config::kTileK>>;
  using ClusterShape = cute::Shape<cute::_1, cute::_1, cute::_1>;
  static constexpr int kSlots = Config::kBlockM < Config::kTileM ? Config::kTileM / Config::kBlockM : 1;

  static constexpr int64_t kBytes = sizeof(Element);

  using StrideA = cute::Stride<int64_t, cute::_1, int64_t>;  // (bm, bk, nnzb)
  using StrideB = cute::Stride<cute::_1, int64_t, int64_t>;  // (N, K, 1)
  using TiledMma = decltype(cute::make_tiled_mma(
      cute::GMMA::ss_op_selector<Element, Element, float, TileShape, cute::GMMA::Major::K, cute::GMMA::Major::MN>(),
      cute::Layout<cute::Shape<cute::_2, cute::_1, cute::_1>>{}));

  using Mainloop = cutlass::gemm::collective::CollectiveMma<
      MainloopSm90TmaGmmaBsr<Config::kStages, kSlots>, TileShape, Element, StrideA, Element, StrideB, TiledMma,
      cute::SM90_TMA_LOAD, cute::GMMA::Layout_K_SW128_Atom<Element>, void, cute::identity, cute::SM90_TMA_LOAD,
      cute::GMMA::Layout_MN_SW128_Atom<Element>, void, cute::identity>;
  using Epilogue = BsrEpilogue<Element, kSlots>;
  using Kernel =
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue, BsrScheduler>;

  static cudaError_t prepare() {
    return cudaFuncSetAttribute(collective_kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                Kernel::SharedStorageSize);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    typename Kernel::Arguments arguments;
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = {int(args.rows), int(args.n), int(args.cols), 1};
    const int64_t nnzb = args.nnzb > 0 ? args.nnzb : 1;
    arguments.mainloop = {{}, {}, args.block_m, args.block_k, int(nnzb), args.entry_k, args.entry_block};
    cudaError_t error = make_tensor_map(
        &arguments.mainloop.map_a, args.values,
        {{args.block_k, args.block_m, nnzb}, {args.block_k * kBytes, int64_t(args.block_m) * args.block_k * kBytes}},
        Mainloop::kMapBoxA, 128);
    if (error != cudaSuccess) return error;
    error = make_tensor_map(&arguments.mainloop.map_b, args.b,
                            {{args.n, args.cols, 1}, {args.ldb * kBytes, args.ldb * kBytes}}, Mainloop::kMapBoxB, 128);
    if (error != cudaSuccess) return error;
    arguments.epilogue = {args, can_store_by_tma<Element>(args), {}};
    if (arguments.epilogue.by_tma) error = make_store_map(&arguments.epilogue.map_c, args);
    if (error != cudaSuccess) return error;
    arguments.hw_info.sm_count = args.workers;
    arguments.hw_info.max_active_clusters = args.workers;
    arguments.scheduler = {{args.tiles, args.tiles_count, args.tiles_taken, uint32_t(args.late_workers)},
                           args.n,
                           args.block_k / Config::kTileK};

    const auto params = Kernel::to_underlying_arguments(arguments, nullptr);
    return launch_kernel(collective_kernel<Kernel>, args.workers, Kernel::MaxThreadsPerBlock, Kernel::SharedStorageSize,
                         args.stream, {/*overlap=*/true}, params);
  }
};

template <class Config>
constexpr KernelOps collective_ops() {
  using K = CollectiveKernel<Config>;
  return {&K::prepare,         &K::launch,          /*ctas_per_sm=*/1,     /*tensor_cores=*/true, /*tma_b=*/true,
          /*any_rows=*/true,   /*align_values=*/16, /*any_epilogue=*/true, /*most_cluster=*/1,    /*may_split=*/false,
          /*takes_tiles=*/true};
}

}  // namespace sparsek::cuda
