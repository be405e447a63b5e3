// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_scatter": wgmma for blocks of any size up to 64 x 64, single nonzeros too, by many columns.
//
// A is read sparse and multiplied dense. Of small blocks, the 128 rows of a tile have most columns of A between them,
// so the product takes little longer than a dense one of these columns. The plan lists A's elements by stages
// (stage_lists.h), and a kernel before this one copies their values to the order of the lists (stage_values.h).
// Producer warps read these lists and write the elements to their places in a dense tile in shared memory, whose rest
// is zero (scatter_producer.cuh). Stages in which no row of the tile has a block are left out.
//
//   A   stage (128, 64), K-major, 128-byte swizzle, written by the producer warps, 32 rows each
//   B   stage (chunk of 64 columns, 64, 64), N-major, 128-byte swizzle: by TMA; rows behind A's columns are zero
//   C   (M, N):(ldc, 1) through shared memory and bulk stores, or from registers: any rows, M, N, pitch, alignment
//
// Zeros times Inf or NaN are NaN: a warp computes the groups of 8 columns of its 16 rows with NaN in their sums again
// (scatter_again.cuh).
#pragma once

#include <cuda.h>

#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/nan_sums.cuh"
#include "cuda/row_store.cuh"
#include "cuda/scatter_again.cuh"
#include "cuda/scatter_join.cuh"
#include "cuda/scatter_producer.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

using ring_kernel::kUnitK;
using ring_kernel::kUnits;

// A warp's 16 rows of a tile of C, in one half of it.
struct OwnRows {
  uint32_t first_row, first_col;
  int warp, lane;  // of the consumers
  template <class Storage>
  __device__ OwnRows(const Params& p, const Storage&, int tile, int half) {
    uint32_t thread = threadIdx.x - Storage::kProducers;
    asm volatile("" : "+r"(thread));  // so that what follows from it takes no registers of the main loop
    warp = thread / 32;
    lane = thread % 32;
    const Place place(p, tile);
    first_row = place.group * kTileM + half * (kTileM / 2) + warp % 4 * kStoreRows;
    first_col = place.panel * Storage::kTileN;
  }
  __device__ uint32_t row() const { return first_row + lane / 4; }
};

// Stores them, but for the groups of 8 columns that it returns, which have NaN. first_buffer: a warp that stores 64
// columns at a time takes its buffers in turn; others take both each time.
template <class Element, class Storage, int Groups>
__device__ uint32_t store(const Params& p, Storage& shared, float (&acc)[Groups][4], const OwnRows& own,
                          int first_buffer) {
  const LaunchArgs& args = p.args;
  const uint32_t row[2] = {own.row(), own.row() + 8};
  uint32_t with_nan = 0;
  if (any_nan(args, acc, row, own.first_col, own.lane)) {
    with_nan = groups_with_nan(args, acc, row, own.first_col);
    if (own.lane == 0) atomicAdd(args.recomputed, 1ull);
  }
  if (p.by_tma && with_nan == 0) {
    auto& buffers = reinterpret_cast<StoreBuffers&>(shared.buffers[own.warp][first_buffer]);
    store_rows_by_tma<Element>(p.map_c, alpha_of(args.epilogue), acc, buffers, own.first_row, own.first_col, own.lane);
  } else {
    // The next store of 64 columns by TMA waits but for the one before the last, which must not be of its buffer.
    if (p.by_tma && Groups * 8 == kStoreColumns) wait_for_stores();
    store_rows<Element, true>(args, acc, row, own.first_col, own.lane, with_nan);
  }
  return with_nan;
}

// Of 512 threads ptxas gives each 128 registers, of which m64n256 alone needs more; m64n128 does not.
template <class Element, int First, int Groups, size_t... I>
__device__ void multiply(float (&acc)[Groups][4], uint64_t a, uint64_t b, std::index_sequence<I...>) {
  WgmmaSs<Element, Major::MN, Major::K, int(sizeof...(I)) / 4>::Op::fma(a, b, acc[First + I / 4][I % 4]...,
                                                                        cute::SM90::GMMA::ScaleOut::One);
}

// Begins acc(64, 8 Groups) += a(64, 16) b(16, 8 Groups).
template <class Element, int Groups>
__device__ void multiply(float (&acc)[Groups][4], uint64_t a, uint64_t b) {
  constexpr int kMost = 16;  // groups of one instruction
  multiply<Element, 0>(acc, a, b, std::make_index_sequence<4 * std::min(Groups, kMost)>());
  if constexpr (Groups > kMost) {
    static_assert(Groups == 2 * kMost);
    multiply<Element, kMost>(acc, a, advanced(b, 8 * kMost / kChunkColumns * kChunkBytes),
                             std::make_index_sequence<4 * kMost>());
  }
}

template <class Element, class Storage>
__device__ void consume(const Params& p, Storage& shared) {
  constexpr int kGroups = Storage::kTileN / 8, kStages = Storage::kStages;
  constexpr int kHalves = 2 / Storage::kWarpgroups, kHalfBytes = kStageBytesA / 2;
  const LaunchArgs& args = p.args;
  const int warpgroup = int(threadIdx.x - Storage::kProducers) / 128, lane = threadIdx.x % 32;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint64_t first_a = wgmma_descriptor_a(cute::cast_smem_ptr_to_uint(shared.a) + warpgroup * kHalfBytes);
  const uint64_t first_b = wgmma_descriptor_b(cute::cast_smem_ptr_to_uint(shared.b), kChunkBytes);
  wait_for_previous_launch();
  if (p.parts > 1) allow_dependent_launch();  // of the kernel that joins them
  RingState<kStages> state;
  const auto release = [&](int stage) {
    __syncwarp();
    if (lane == 0) arrive_in_cluster<1>(first_empty + stage * kBarrierBytes);
  };
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    float acc[kHalves][kGroups][4] = {};
    const int steps = PartOfSteps(p, Place(p, tile).steps(p)).count;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
      // A was written by threads, and is read by tensor cores. The producers would wait here for the copies ahead.
      cutlass::arch::fence_view_async_shared();
      const uint64_t a = advanced(first_a, state.stage * kStageBytesA);
      const uint64_t b = advanced(first_b, state.stage * Storage::kStageBytesB);
      cute::warpgroup_arrive();
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          multiply<Element>(acc[half], advanced(a, half * kHalfBytes + u * kUnitK * kElementBytes),
                            advanced(b, u * kUnitK * kChunkColumns * kElementBytes));
        }
      }
      cute::warpgroup_commit_batch();
      cute::warpgroup_wait<1>();
      if (step > 0) release(state.previous());
      ++state;
    }
    cute::warpgroup_wait<0>();
#pragma unroll
    for (int half = 0; half < kHalves; ++half) wgmma_fence(acc[half]);
    if (steps > 0) release(state.previous());
    if (p.parts > 1) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        const OwnRows own(p, shared, tile, warpgroup + half);
        leave_sums(args, p.sums, acc[half], own.first_row, own.first_col, own.lane);
      }
      return;
    }
    uint32_t with_nan[kHalves];
#pragma unroll 1
    for (int half = 0; half < kHalves; ++half) {
      const OwnRows own(p, shared, tile, warpgroup + half);
      if constexpr (kHalves == 2) with_nan[0] = with_nan[1];
      with_nan[kHalves - 1] = store<Element>(p, shared, acc[0], own, half);
#pragma unroll
      for (int i = 0; i < (kHalves - 1) * kGroups * 4; ++i) acc[0][i / 4][i % 4] = acc[1][i / 4][i % 4];
    }
#pragma unroll 1
    for (int half = 0; half < kHalves; ++half) {
      const OwnRows own(p, shared, tile, warpgroup + half);
      const uint32_t groups = half == 0 ? with_nan[0] : with_nan[kHalves - 1];
      if (groups != 0) compute_again<Element>(args, p.rows, own.first_row, own.first_col, own.lane, groups);
    }
  }
  wait_for_stores();
}

// Registers of a thread. A CTA has no more of them than at its launch: 384 times 80, or 512 times 128.
constexpr int producer_registers(int tile_n) { return tile_n <= 64 ? 56 : 64; }
constexpr int consumer_registers(int tile_n) { return tile_n <= 64 ? 128 : 192; }

static_assert(kTurns * producer_registers(64) + consumer_registers(64) <= 3 * 80 &&
              kTurns * producer_registers(256) + 2 * consumer_registers(256) <= 4 * 128);

constexpr int threads_of(int tile_n) { return 128 * (kTurns + warpgroups_of(tile_n)); }

template <class Element, int TileN, int Stages, int Ctas>
__global__ void __launch_bounds__(threads_of(TileN), Ctas) kernel(const __grid_constant__ Params p) {
  using Memory = Storage<TileN, Stages>;
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Memory*>(memory);
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(kFullArrivals);
      shared.empty[s].init(Memory::kConsumerWarps);
    }
    for (int i = 0; i < Memory::kProducerWarps * Memory::kSlots; ++i) shared.copied[0][i].init(1);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x < Memory::kProducers) {
    cutlass::arch::warpgroup_reg_dealloc<producer_registers(TileN)>();
    clear_rest(p, shared);
    produce(p, shared);
  } else {
    cutlass::arch::warpgroup_reg_alloc<consumer_registers(TileN)>();
    consume<Element>(p, shared);
  }
}

}  // namespace wgmma_scatter_kernel

template <class Config>
struct WgmmaScatterKernel {
  using Element = typename Config::Element;
  static_assert(Config::kTileM == wgmma_scatter_kernel::kTileM && Config::kTileK == wgmma_scatter_kernel::kStageK);
  static constexpr int kTileN = Config::kTileN, kStages = Config::kStages, kCtas = kTileN <= 64 ? 2 : 1;
  static constexpr int kSharedBytes = sizeof(wgmma_scatter_kernel::Storage<kTileN, kStages>);
  // Of an SM, and what each CTA has beside: so many run at once.
  static_assert(kCtas * (kSharedBytes + 1024) <= 228 * 1024);
  static constexpr int kThreads = wgmma_scatter_kernel::threads_of(kTileN);
  static constexpr auto kKernel = wgmma_scatter_kernel::kernel<Element, kTileN, kStages, kCtas>;

  static cudaError_t prepare() {
    cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error == cudaSuccess) error = wgmma_scatter_kernel::prepare_join<Element>();
    if (error == cudaSuccess) error = prepare_stage_lists();
    return error == cudaSuccess ? prepare_stage_values() : error;
  }

  static int64_t panels_of(const LaunchArgs& args) { return (args.n + kTileN - 1) / kTileN; }

  static size_t workspace_bytes(const LaunchArgs& args) {
    const ListSizes sizes = list_sizes(args.rows, args.cols, args.nnzb, args.block_m, args.block_k);
    const int64_t parts = args.cluster > 1 ? sizes.groups * panels_of(args) * args.cluster : 0;
    return static_cast<size_t>(sizes.value_bytes() + wgmma_scatter_kernel::bytes_of_sums(parts, kTileN));
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_scatter_kernel;
    const auto& rows = static_cast<const ScatteredRows&>(*args.rows_in_chunks);
    const ListSizes& sizes = rows.sizes;
    k::Params p = {{}, {}, args, rows, k::BoxesOfB::of(args)};
    p.values = static_cast<const uint16_t*>(args.workspace);
    p.sums = reinterpret_cast<float4*>(static_cast<char*>(args.workspace) + sizes.value_bytes());
    // Chunks of fewer than 64 rows have gaps between them in shared memory.
    p.boxes.chunks = sizes.columns == k::kStageK ? std::min(p.boxes.chunks, kTileN / k::kChunkColumns) : 1;
    p.groups = static_cast<int32_t>(sizes.groups);
    p.parts = args.cluster;
    p.panels = static_cast<int32_t>(panels_of(args));
    p.tiles = p.groups * p.panels * p.parts;
    p.by_tma = can_store_by_tma<Element>(args);
    cudaError_t error = p.boxes.make_map(&p.map_b, args, sizes.columns, p.boxes.chunks);
    if (error == cudaSuccess && p.by_tma) error = make_store_map(&p.map_c, args);
    if (error == cudaSuccess) error = copy_stage_values(sizes, rows.lists, args.values, args.workspace, args.stream);
    if (error != cudaSuccess) return error;
    const int ctas = p.parts > 1 ? p.tiles : std::min(args.workers, p.tiles);
    error = launch_kernel(kKernel, ctas, kThreads, kSharedBytes, args.stream, {/*overlap=*/true}, p);
    if (error != cudaSuccess || p.parts == 1) return error;
    return k::join<Element>({args, rows, p.sums, p.groups, p.groups * p.panels, p.parts, kTileN / 8});
  }
};

template <class Config>
constexpr KernelOps wgmma_scatter_ops() {
  using K = WgmmaScatterKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/K::kCtas,
                   /*tensor_cores=*/true,
                   /*tma_b=*/true,
                   /*any_rows=*/false,
                   /*align_values=*/sizeof(typename K::Element),
                   /*any_epilogue=*/true};
  ops.workspace_bytes = &K::workspace_bytes;
  ops.takes_chunks = true;
  ops.most_block = kListColumns;
  return ops;
}

}  // namespace sparsek::cuda
