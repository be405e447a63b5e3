// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_tf32": fp32 rounded to TF32, on tensor cores, for blocks whose height is a multiple of 64 and
// whose width is one of 32.
//
// The main loop is that of wgmma_blocks with A and B K-major, the only order in which wgmma reads 32-bit operands. A
// row of a stage is 128 bytes, and an instruction takes 32 of them, whether these are 16 elements or 8. So sizes and
// places along K are counted in words of 16 bits, two of an element. wgmma does not read the lower 13 bits of an
// element.
//
//   A   as in wgmma_blocks: stage (half, 64, 32)
//   B   (K, N):(1, ldb): stage (256 columns, 32), one box
//   C   from registers: any rows, M, N, pitch, alignment
#pragma once

#include "cuda/wgmma_blocks.cuh"

namespace sparsek::cuda {

template <>
struct WgmmaSs<float, Major::K, Major::K, 32> {
  using Op = cute::SM90::GMMA::MMA_64x256x8_F32TF32TF32_SS_TN<>;
};

namespace wgmma_tf32_kernel {

constexpr int kWords = sizeof(float) / wgmma_blocks_kernel::kElementBytes;

template <int Slots, int Stages, int Ctas>
using Mainloop =
    wgmma_blocks_kernel::Mainloop<Slots, Stages, Ctas, wgmma_blocks_kernel::Majors<Major::K, Major::K, kWords>, false>;

template <int Slots, int Stages, int Ctas>
__global__ void __launch_bounds__(wgmma_blocks_kernel::kThreads, 1)
    kernel(const __grid_constant__ wgmma_blocks_kernel::Params p) {
  wgmma_blocks_kernel::run<float, Mainloop<Slots, Stages, Ctas>>(p);
}

}  // namespace wgmma_tf32_kernel

template <class Config>
struct WgmmaTf32Kernel {
  static constexpr int kStageK = wgmma_blocks_kernel::kStageK / wgmma_tf32_kernel::kWords;
  static_assert(Config::kTileM == wgmma_blocks_kernel::kTileM && Config::kTileN == wgmma_blocks_kernel::kTileN &&
                Config::kTileK == kStageK);
  static constexpr int kSlots = Config::kBlockM < Config::kTileM ? Config::kTileM / Config::kBlockM : 1;
  static_assert(kSlots <= wgmma_blocks_kernel::kHalves, "a warpgroup computes one slot, or a half of one");
  template <int Ctas>
  static constexpr int kSharedBytes =
      sizeof(ring_kernel::SharedStorage<wgmma_tf32_kernel::Mainloop<kSlots, Config::kStages, Ctas>>);
  template <int Ctas>
  static constexpr auto kKernel = wgmma_tf32_kernel::kernel<kSlots, Config::kStages, Ctas>;

  template <int Ctas>
  static cudaError_t prepare_for() {
    return cudaFuncSetAttribute(kKernel<Ctas>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<Ctas>);
  }
  static cudaError_t prepare() {
    const cudaError_t error = prepare_for<1>();
    return error != cudaSuccess ? error : prepare_for<2>();
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_blocks_kernel;
    using wgmma_tf32_kernel::kWords;
    k::Params p;
    p.args = args;
    p.boxes = k::BoxesOfB::of(args);
    p.by_tma = false;
    p.steps = args.block_k / kStageK;
    LaunchArgs words = args;  // the same operands, of 16-bit elements
    words.cols *= kWords;
    words.ldb *= kWords;
    cudaError_t error = p.boxes.make_map(&p.map_b, words, k::kStageK, p.boxes.chunks);
    if (error != cudaSuccess) return error;
    const int64_t row_bytes = int64_t{args.block_k} * int64_t{sizeof(float)}, block_bytes = row_bytes * args.block_m;
    error = make_tensor_map(
        &p.map_a, args.values,
        {{int64_t{args.block_k} * kWords, args.block_m, args.nnzb > 0 ? args.nnzb : 1}, {row_bytes, block_bytes}},
        {k::kStageK, k::kHalfRows, 1}, 128);
    if (error != cudaSuccess) return error;
    return args.panels == 1 ? launch_as<1>(p) : launch_as<2>(p);
  }

 private:
  template <int Ctas>
  static cudaError_t launch_as(const wgmma_blocks_kernel::Params& p) {
    return launch_kernel(kKernel<Ctas>, p.args.workers * Ctas, wgmma_blocks_kernel::kThreads, kSharedBytes<Ctas>,
                         p.args.stream, {/*overlap=*/true, /*cluster=*/Ctas}, p);
  }
};

template <class Config>
constexpr KernelOps wgmma_tf32_ops() {
  using K = WgmmaTf32Kernel<Config>;
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
