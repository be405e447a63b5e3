// SPDX-License-Identifier: Apache-2.0
// Kernel family "tma_sandbox", a baseline: a Hopper kernel written by hand, without a CUTLASS collective, to try an
// idea before it goes into the other families, and to compare them with. It runs only where it is named.
//
// A CTA computes 128 x 256 elements of C. Blocks are multiples of 128 high, so that a tile lies in one block row, and
// multiples of 64 wide.
//
//   A   by TMA from a view (bk, bm, nnzb) of the values:  stage (128, 64), K-major, 128-byte swizzle
//   B   by TMA:                                           stage (4 chunks of 64 columns, 64, 64), N-major, the same
//   swizzle C   (M, N):(ldc, 1) from registers: any M, N and pitch
//
// One producer thread fills the ring; each of two consumer warpgroups multiplies 64 rows by wgmma m64n256k16, with one
// group of four in flight while it waits for the next stage.
#pragma once

#include <cuda.h>

#include <type_traits>
#include <utility>

#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/tensor_map.h"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cute/arch/mma_sm90_gmma.hpp"
#include "cutlass/arch/barrier.h"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace tma_sandbox {

constexpr int kConsumers = 2;  // warpgroups
constexpr int kConsumerWarps = kConsumers * 4;
constexpr int kThreads = (kConsumers + 1) * 128;
constexpr int kGroupRows = 64;  // rows of a consumer warpgroup
constexpr int kTileM = kConsumers * kGroupRows, kTileN = 256, kTileK = 64;
constexpr int kChunkColumns = 64;  // the inner extent of a 128-byte swizzle
constexpr int kChunks = kTileN / kChunkColumns;
constexpr int kMmaK = 16;
constexpr int kRowBytes = kTileK * 2;  // bytes of a row of A and of a chunk of B: one row of the swizzle
constexpr int kBytesA = kTileM * kRowBytes, kChunkBytes = kTileK * kRowBytes, kBytesB = kChunks * kChunkBytes;

struct Params {
  CUtensorMap map_a, map_b;
  LaunchArgs args;
  bool chunks_are_outer;  // map_b (64, K, N / 64) where N is a multiple of 64, else (N, K, 1)
};

template <int Stages>
struct SharedStorage {
  alignas(1024) uint8_t a[Stages][kBytesA];  // (stage, 128, 64)
  alignas(1024) uint8_t b[Stages][kBytesB];  // (stage, chunk, 64, 64)
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

// The descriptor of an operand of wgmma in shared memory (PTX ISA, "Matrix Descriptor Format"), addresses and offsets
// in units of 16 bytes: bits 0-13 the address, 16-29 the leading offset, 32-45 the stride offset, 62-63 the swizzle, 1
// for 128 bytes. The address is that of the first of eight rows of the swizzle, plus the offset of the slice within a
// row.
__device__ constexpr uint64_t descriptor(uint32_t address, int leading_bytes, int stride_bytes) {
  return uint64_t(address / 16) | uint64_t(leading_bytes / 16) << 16 | uint64_t(stride_bytes / 16) << 32 |
         uint64_t(1) << 62;
}

// A, K-major: the stride leads from 8 rows to the next 8; the leading offset is not used. A slice of 16 columns is 32
// bytes further on in each row.
__device__ inline uint64_t descriptor_a(uint32_t address, int slice) {
  return descriptor(address + slice * kMmaK * 2, 16, 8 * kRowBytes);
}

// B, N-major: the stride leads from 8 rows (of k) to the next 8, the leading offset from 64 columns to the next 64. A
// slice is 16 rows further on.
__device__ inline uint64_t descriptor_b(uint32_t address, int slice) {
  return descriptor(address + slice * kMmaK * kRowBytes, kChunkBytes, 8 * kRowBytes);
}

// acc(64, 256) += A(64, 16) B(16, 256). A thread's sums have the layout of 32 mma.sync m16n8 side by side: [n / 8][4].
template <size_t... I>
__device__ void multiply(float (&acc)[32][4], uint64_t a, uint64_t b, std::index_sequence<I...>) {
  using Mma = cute::SM90::GMMA::MMA_64x256x16_F32BF16BF16_SS<cute::SM90::GMMA::Major::K, cute::SM90::GMMA::Major::MN>;
  Mma::fma(a, b, acc[I / 4][I % 4]...);
}

// Keeps the compiler from moving uses of the sums across this call.
__device__ inline void fence_sums(float (&acc)[32][4]) {
#pragma unroll
  for (int i = 0; i < 128; ++i) cute::warpgroup_fence_operand(acc[i / 4][i % 4]);
}

template <int Stages>
__device__ void produce(const Params& p, SharedStorage<Stages>& shared) {
  const LaunchArgs& args = p.args;
  constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
  RingState<Stages> state;
  for (int t = blockIdx.x; t < args.tiles_count; t += gridDim.x) {
    const WorkTile tile = args.tiles[t];
    if (int64_t(tile.n_tile) * kTileN >= args.n) continue;
    const int row_in_block = int(int64_t(tile.m_tile) * kTileM % args.block_m);
    for (int e = tile.entry_begin; e < tile.entry_begin + tile.entry_count; ++e) {
      const int block = __ldg(args.entry_block + e), row = __ldg(args.entry_k + e);
      for (int k = 0; k < args.block_k; k += kTileK, ++state) {
        shared.empty[state.stage].wait(state.phase ^ 1);
        shared.full[state.stage].arrive_and_expect_tx(kBytesA + kBytesB);
        auto* const barrier = reinterpret_cast<uint64_t*>(&shared.full[state.stage]);
        cute::SM90_TMA_LOAD_3D::copy(&p.map_a, barrier, kHint, shared.a[state.stage], k, row_in_block, block);
        uint8_t* const to = shared.b[state.stage];
        if (p.chunks_are_outer) {
          cute::SM90_TMA_LOAD_3D::copy(&p.map_b, barrier, kHint, to, 0, row + k, tile.n_tile * kChunks);
          continue;
        }
        for (int chunk = 0; chunk < kChunks; ++chunk) {
          cute::SM90_TMA_LOAD_3D::copy(&p.map_b, barrier, kHint, to + chunk * kChunkBytes,
                                       tile.n_tile * kTileN + chunk * kChunkColumns, row + k, 0);
        }
      }
    }
  }
}

template <class Element, int Stages>
__device__ void consume(const Params& p, SharedStorage<Stages>& shared, int warp, int lane) {
  const LaunchArgs& args = p.args;
  const uint32_t a = cute::cast_smem_ptr_to_uint(shared.a) + warp / 4 * kGroupRows * kRowBytes;
  const uint32_t b = cute::cast_smem_ptr_to_uint(shared.b);
  const auto release = [&](int stage) {
    if (lane == 0) shared.empty[stage].arrive();
  };
  RingState<Stages> state;
  for (int t = blockIdx.x; t < args.tiles_count; t += gridDim.x) {
    const WorkTile tile = args.tiles[t];
    if (int64_t(tile.n_tile) * kTileN >= args.n) continue;
    const int steps = tile.entry_count * (args.block_k / kTileK);
    float acc[32][4] = {};
    int before = 0;  // the stage of the previous step
    for (int step = 0; step < steps; ++step, ++state) {
      shared.full[state.stage].wait(state.phase);
      fence_sums(acc);
      cute::warpgroup_arrive();
#pragma unroll
      for (int slice = 0; slice < kTileK / kMmaK; ++slice) {
        multiply(acc, descriptor_a(a + state.stage * kBytesA, slice), descriptor_b(b + state.stage * kBytesB, slice),
                 std::make_index_sequence<128>());
      }
      cute::warpgroup_commit_batch();
      fence_sums(acc);
      cute::warpgroup_wait<1>();
      if (step > 0) release(before);
      before = state.stage;
    }
    cute::warpgroup_wait<0>();
    fence_sums(acc);
    if (steps > 0) release(before);
    const uint32_t first_row = uint32_t(tile.m_tile) * kTileM + warp * 16 + lane / 4;
    store_rows<Element>(args, acc, {first_row, first_row + 8}, tile.n_tile * kTileN, lane);
  }
}

template <class Element, int Stages>
__global__ void __launch_bounds__(kThreads, 1) tma_sandbox_kernel(const __grid_constant__ Params p) {
  extern __shared__ uint8_t memory[];
  auto& shared = *reinterpret_cast<SharedStorage<Stages>*>((reinterpret_cast<uintptr_t>(memory) + 1023) / 1024 * 1024);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kConsumerWarps);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  // The sums alone take 128 registers of a consumer thread.
  if (warp >= kConsumerWarps) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x == kConsumerWarps * 32) produce(p, shared);
  } else {
    cutlass::arch::warpgroup_reg_alloc<232>();
    consume<Element>(p, shared, warp, lane);
  }
}

}  // namespace tma_sandbox

template <class Config>
struct TmaSandboxKernel {
  using Element = typename Config::Element;
  static_assert(std::is_same_v<Element, cutlass::bfloat16_t>);
  static_assert(Config::kTileM == tma_sandbox::kTileM && Config::kTileN == tma_sandbox::kTileN &&
                Config::kTileK == tma_sandbox::kTileK);
  static_assert(Config::kBlockM % Config::kTileM == 0, "a tile lies in one block row");
  static constexpr int kSharedBytes = sizeof(tma_sandbox::SharedStorage<Config::kStages>) + 1024;  // to align it
  static constexpr auto kKernel = tma_sandbox::tma_sandbox_kernel<Element, Config::kStages>;

  static cudaError_t prepare() {
    return cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    tma_sandbox::Params p;
    p.args = args;
    const int64_t block_row_bytes = int64_t(args.block_k) * 2, row_bytes = args.ldb * 2;
    const TensorMapShape shape_a = {{args.block_k, args.block_m, args.nnzb > 0 ? args.nnzb : 1},
                                    {block_row_bytes, block_row_bytes * args.block_m}};
    cudaError_t error =
        make_tensor_map(&p.map_a, args.values, shape_a, {tma_sandbox::kTileK, tma_sandbox::kTileM, 1}, 128);
    if (error != cudaSuccess) return error;

    constexpr int kColumns = tma_sandbox::kChunkColumns;
    p.chunks_are_outer = args.n % kColumns == 0;
    const TensorMapShape shape_b =
        p.chunks_are_outer ? TensorMapShape{{kColumns, args.cols, args.n / kColumns}, {row_bytes, kColumns * 2}}
                           : TensorMapShape{{args.n, args.cols, 1}, {row_bytes, row_bytes}};
    error = make_tensor_map(&p.map_b, args.b, shape_b,
                            {kColumns, tma_sandbox::kTileK, p.chunks_are_outer ? tma_sandbox::kChunks : 1}, 128);
    if (error != cudaSuccess) return error;
    return launch_kernel(kKernel, args.workers, tma_sandbox::kThreads, kSharedBytes, args.stream, {}, p);
  }
};

template <class Config>
constexpr KernelOps tma_sandbox_ops() {
  using K = TmaSandboxKernel<Config>;
  return {&K::prepare,        &K::launch,          /*ctas_per_sm=*/1,     /*tensor_cores=*/true, /*tma_b=*/true,
          /*any_rows=*/false, /*align_values=*/16, /*any_epilogue=*/false};
}

}  // namespace sparsek::cuda
