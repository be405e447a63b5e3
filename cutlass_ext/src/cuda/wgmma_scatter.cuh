// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_scatter": wgmma for blocks of any size up to 64 x 64, single nonzeros too, by many columns.
//
// A is read sparse and multiplied dense. Of small blocks, the 128 rows of a tile have most columns of A between them,
// so the product takes little longer than a dense one of these columns. The plan lists A's elements by stages
// (stage_lists.h), and a kernel before this one copies their values to the order of the lists (stage_values.h).
// Producer warps read these lists and write the elements to their places in a dense tile in shared memory, whose rest
// is +0 (scatter_producer.cuh); zeros of blocks are -0. Stages in which no row of the tile has a block are left out.
// Where a plan keeps A's stages (stage_tiles.h), they are copied to shared memory as they are; where it keeps the
// values in the order of the lists, no kernel comes before.
//
//   A   stage (128, 64), K-major, 128-byte swizzle, written by the producer warps, 32 rows each
//   B   stage (chunk of 64 columns, 64, 64), 128-byte swizzle, by TMA: N-major, where rows behind A's columns are zero,
//       or K-major, where stages begin at multiples of 8 columns of A
//   C   (M, N):(ldc, 1) or :(1, ldc) through shared memory and bulk stores, or from registers: any rows, M, N, pitch,
//       alignment
//
// Zeros times Inf or NaN are NaN: behind its last tile, a CTA computes the groups of 8 columns with NaN in their sums
// again (scatter_again.cuh).
#pragma once

#include <cuda.h>

#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/nan_sums.cuh"
#include "cuda/read_here.cuh"
#include "cuda/row_store.cuh"
#include "cuda/scatter_again.cuh"
#include "cuda/scatter_producer.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

// A warp's 16 rows of a tile of C. half: of the tile's rows, if a warpgroup has both.
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
    first_row = place.group * kTileM + half * (kTileM / 2) + warp * kStoreRows;
    first_col = place.panel * Storage::kTileN;
  }
  __device__ uint32_t row() const { return first_row + lane / 4; }
};

// The groups of 8 columns whose sums have NaN, which it notes. any: whether some have, if only beyond C.
template <class Storage, int Groups>
__device__ uint32_t note_nan(const Params& p, Storage& shared, const float (&acc)[Groups][4], const OwnRows& own,
                             int tile, bool any) {
  uint32_t with_nan = 0;
  if (any) {
    const uint32_t row[2] = {own.row(), own.row() + 8};
    with_nan = groups_with_nan(p.args, acc, row, own.first_col);
    if (with_nan != 0 && own.lane == 0) {
      atomicAdd(p.args.recomputed, 1ull);
      shared.has_nan = true;
    }
  }
  if (own.lane == 0) nan_of(p, shared, tile, int(own.first_row) % kTileM / kStoreRows) = with_nan;
  return with_nan;
}

// Stores them, but for the groups of 8 columns that have NaN. first_buffer: a warp that stores 64
// columns at a time takes its buffers in turn; others take both each time.
template <class Element, class Storage, int Groups>
__device__ void store(const Params& p, Storage& shared, float (&acc)[Groups][4], const OwnRows& own, int tile,
                      int first_buffer) {
  const LaunchArgs& args = p.args;
  const uint32_t row[2] = {own.row(), own.row() + 8};
  const uint32_t with_nan = note_nan(p, shared, acc, own, tile, any_nan(args, acc, row, own.first_col, own.lane));
  if (p.by_tma && with_nan == 0) {
    auto& buffers = reinterpret_cast<StoreBuffers&>(shared.buffers[own.warp][first_buffer]);
    store_rows_by_tma<Element>(p.map_c, alpha_of(args.epilogue), acc, buffers, own.first_row, own.first_col, own.lane);
  } else {
    // The next store of 64 columns by TMA waits but for the one before the last, which must not be of its buffer.
    if (p.by_tma && Groups * 8 == kStoreColumns) wait_for_stores();
    store_rows<Element, true>(args, acc, row, own.first_col, own.lane, with_nan);
  }
}

// The same for C in either order. Where it is M-major, the four warps of a warpgroup store their rows together, unless
// one of them has NaN.
template <class Element, class Storage, int Groups>
__device__ void store_any_c(const Params& p, Storage& shared, float (&acc)[Groups][4], const OwnRows& own, int tile,
                            int first_buffer) {
  constexpr bool kTakesBuffersInTurn = Groups * 8 == kStoreColumns;
  const LaunchArgs& args = p.args;
  const uint32_t row[2] = {own.row(), own.row() + 8};
  const uint32_t with_nan = note_nan(p, shared, acc, own, tile, any_nan(args, acc, row, own.first_col, own.lane));
  const int warpgroup = Storage::kWarpgroups == 1 ? 0 : own.warp / kColumnStoreWarps;
  const int warp = own.warp % kColumnStoreWarps;
  const bool together = Storage::kColumnsByTma && p.by_tma && !any_of_warpgroup(with_nan != 0, warpgroup);
  // See store.
  if (kTakesBuffersInTurn && p.by_tma && !together) wait_for_stores();
  uint8_t* const buffers = &shared.buffers[warpgroup * kColumnStoreWarps][0][0];
  const ColumnStore columns = {p.map_c, buffers, own.first_row - warp * kStoreRows, warpgroup, warp, own.lane};
  const RowTile to = {
      {row[0], row[1]}, own.first_col, int(min(int64_t(Groups * 8), args.n - own.first_col)), own.lane % 4 * 2};
  store_in_turns<true, true>(args, acc, to, with_nan, [&](const auto& sums, const RowTile& of, uint32_t groups) {
    // A wide tile begins at a multiple of as many columns as there are buffers.
    const int chunk = kTakesBuffersInTurn ? first_buffer : of.first_col / kStoreColumns;
    if (together) return columns.store<Element>(1.f, sums, chunk, of.first_col);
    with_type(args.epilogue.dtype_c, [&](auto type) {
      using Type = decltype(type);
      args.c_m_major ? write_columns<Type>(args, sums, of, groups) : write<Type>(args, sums, of, groups);
    });
  });
}

// A part of the columns.
template <class Element, Major MajorB, int First, int Groups, size_t... I>
__device__ void multiply_some(float (&acc)[Groups][4], uint64_t a, uint64_t b, std::index_sequence<I...>) {
  WgmmaSs<Element, MajorB, Major::K, int(sizeof...(I)) / 4>::Op::fma(a, b, acc[First + I / 4][I % 4]...,
                                                                     cute::SM90::GMMA::ScaleOut::One);
}

// Begins acc(64, 8 Groups) += a(64, 16) b(16, 8 Groups). Of 512 threads ptxas gives each 128 registers, of which
// m64n256 alone needs more; m64n128 does not.
template <class Element, class Storage, int Groups>
__device__ void multiply(float (&acc)[Groups][4], uint64_t a, uint64_t b) {
  constexpr Major kMajorB = Storage::kMajorB;
  if constexpr (Storage::kThreads < 512) {
    wgmma_ss<Element, kMajorB>(acc, a, b);
  } else {
    constexpr int kMost = 16;  // groups of one instruction
    static_assert(Groups == 2 * kMost);
    multiply_some<Element, kMajorB, 0>(acc, a, b, std::make_index_sequence<4 * kMost>());
    multiply_some<Element, kMajorB, kMost>(acc, a, advanced(b, 8 * kMost / kChunkColumns * kChunkBytes),
                                           std::make_index_sequence<4 * kMost>());
  }
}

template <class Element, class Storage>
__device__ void consume(const Params& p, Storage& shared) {
  constexpr int kGroups = Storage::kTileN / 8, kStages = Storage::kStages;
  constexpr int kHalves = Storage::kHalves, kHalfBytes = kStageBytesA / 2;
  const LaunchArgs& args = p.args;
  const int lane = threadIdx.x % 32;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  // K-major, B lies as A does; from one unit of K to the next.
  constexpr bool kMajorIsK = Storage::kMajorB == Major::K;
  constexpr int kUnitBytesB = kUnitK * (kMajorIsK ? 1 : kChunkColumns) * kElementBytes;
  const uint32_t b_address = cute::cast_smem_ptr_to_uint(shared.b);
  const uint64_t first_b = kMajorIsK ? wgmma_descriptor_a(b_address) : wgmma_descriptor_b(b_address, kChunkBytes);
  wait_for_previous_launch();
  if (p.parts > 1) allow_dependent_launch();  // of the kernel that joins them
  RingState<kStages> state;
  const auto release = [&](int stage) {
    __syncwarp();
    if (lane == 0) arrive_in_cluster<1>(first_empty + stage * kBarrierBytes);
  };
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    // For each tile anew: while it is stored, there is no register for it.
    const int warpgroup = (read_thread() - Storage::kProducers) / 128;
    const uint64_t first_a = wgmma_descriptor_a(cute::cast_smem_ptr_to_uint(shared.a) + warpgroup * kHalfBytes);
    float acc[kHalves][kGroups][4] = {};
    const int steps = PartOfSteps(p, Place(p, tile).steps(p)).count;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
      // A was written by threads, and is read by tensor cores. The producers would wait here for the copies ahead.
      if constexpr (!Storage::kLaidOut) cutlass::arch::fence_view_async_shared();
      const uint64_t a = advanced(first_a, state.stage * kStageBytesA);
      const uint64_t b = advanced(first_b, state.stage * Storage::kStageBytesB);
      cute::warpgroup_arrive();
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          multiply<Element, Storage>(acc[half], advanced(a, half * kHalfBytes + u * kUnitK * kElementBytes),
                                     advanced(b, u * kUnitBytesB));
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
        const OwnRows own(p, shared, tile, half);
        const uint32_t found = leave_sums(args, p.sums, acc[half], own.first_row, own.first_col, own.lane);
        note_nan(p, shared, acc[half], own, tile, __any_sync(kWarp, found != 0));
      }
      break;
    }
#pragma unroll 1
    for (int half = 0; half < kHalves; ++half) {
      const OwnRows own(p, shared, tile, half);
      if constexpr (Storage::kAnyC) {
        store_any_c<Element>(p, shared, acc[0], own, tile, half);
      } else {
        store<Element>(p, shared, acc[0], own, tile, half);
      }
#pragma unroll
      for (int i = 0; i < (kHalves - 1) * kGroups * 4; ++i) acc[0][i / 4][i % 4] = acc[1][i / 4][i % 4];
    }
  }
  wait_for_stores();
  if (meet_behind_tiles(shared)) compute_again<Element>(p, shared, state);
}

// Registers of a thread. A CTA has no more of them than at its launch: 384 times 80, or 512 times 128; where A is laid
// out, 256 times 128, or 384 times 168. Stores of an M-major C take some more.
template <class Storage>
constexpr int kProducerRegisters = Storage::kTileN <= 64 ? 56
                                   : Storage::kLaidOut   ? (Storage::kAnyC ? 56 : 72)
                                                         : 64;
template <class Storage>
constexpr int kConsumerRegisters = Storage::kTileN <= 64 ? (Storage::kLaidOut ? 200 : 128)
                                   : Storage::kLaidOut   ? (Storage::kAnyC ? 224 : 216)
                                                         : 192;

constexpr int ctas_of_sm(int tile_n) { return tile_n <= 64 ? 2 : 1; }

template <class Element, class Memory>
__global__ void __launch_bounds__(Memory::kThreads, ctas_of_sm(Memory::kTileN))
    kernel(const __grid_constant__ Params p) {
  constexpr int kAtLaunch = 65536 / ctas_of_sm(Memory::kTileN) / Memory::kThreads / 8 * 8;
  static_assert(Memory::kProducers * kProducerRegisters<Memory> +
                    32 * Memory::kConsumerWarps * kConsumerRegisters<Memory> <=
                Memory::kThreads * kAtLaunch);
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Memory*>(memory);
  if (threadIdx.x == 0) {
    shared.has_nan = false;
    shared.behind_tiles.init(Memory::kThreads / 32);
    for (int s = 0; s < Memory::kStages; ++s) {
      shared.full[s].init(Memory::kFullArrivals);
      shared.empty[s].init(Memory::kConsumerWarps);
    }
    if constexpr (!Memory::kLaidOut) {
      for (int i = 0; i < Memory::kProducerWarps * Memory::kSlots; ++i) shared.copied[0][i].init(1);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x < Memory::kProducers) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters<Memory>>();
    clear_rest(p, shared);
    if constexpr (Memory::kLaidOut) {
      wait_for_previous_launch();
      copy_stages(p, shared);
    } else {
      produce(p, shared);
    }
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters<Memory>>();
    consume<Element>(p, shared);
  }
}

}  // namespace wgmma_scatter_kernel

template <class Config>
struct WgmmaScatterKernel {
  using Element = typename Config::Element;
  static_assert(Config::kTileM == wgmma_scatter_kernel::kTileM && Config::kTileK == wgmma_scatter_kernel::kStageK);
  static constexpr int kTileN = Config::kTileN, kCtas = wgmma_scatter_kernel::ctas_of_sm(kTileN);
  // From lists, and where A is laid out, which leaves room for one stage more. By how B and C lie.
  template <Major MajorB, bool AnyC>
  using ListsOf = wgmma_scatter_kernel::Storage<kTileN, Config::kStages, false, MajorB, AnyC>;
  template <Major MajorB, bool AnyC>
  using LayoutOf = wgmma_scatter_kernel::Storage<kTileN, Config::kStages + 1, true, MajorB, AnyC>;
  using FromLists = ListsOf<Major::MN, false>;
  using FromLayout = LayoutOf<Major::MN, false>;
  // Of an SM, and what each CTA has beside: so many run at once.
  static_assert(kCtas * (std::max(sizeof(FromLists), sizeof(FromLayout)) + 1024) <= 228 * 1024);

  template <class Memory>
  static cudaError_t prepare_kernel() {
    return cudaFuncSetAttribute(wgmma_scatter_kernel::kernel<Element, Memory>,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory));
  }

  // With Of<MajorB, AnyC> for each order that there are kernels for.
  template <template <Major, bool> class Of>
  static cudaError_t prepare_kernels() {
    cudaError_t error = prepare_kernel<Of<Major::MN, false>>();
    if (error == cudaSuccess) error = prepare_kernel<Of<Major::MN, true>>();
    return error == cudaSuccess ? prepare_kernel<Of<Major::K, true>>() : error;
  }

  template <template <Major, bool> class Of>
  static cudaError_t launch_for(int ctas, const wgmma_scatter_kernel::Params& p) {
    const LaunchArgs& args = p.args;
    if (args.b_k_major) return launch_on<Of<Major::K, true>>(ctas, p);
    const bool any_c = args.c_m_major || args.epilogue.input_across;
    return any_c ? launch_on<Of<Major::MN, true>>(ctas, p) : launch_on<Of<Major::MN, false>>(ctas, p);
  }

  template <class Memory>
  static cudaError_t launch_on(int ctas, const wgmma_scatter_kernel::Params& p) {
    return launch_kernel(wgmma_scatter_kernel::kernel<Element, Memory>, ctas, Memory::kThreads, sizeof(Memory),
                         p.args.stream, {/*overlap=*/true}, p);
  }

  static cudaError_t prepare() {
    cudaError_t error = prepare_kernels<ListsOf>();
    if (error == cudaSuccess) error = prepare_kernels<LayoutOf>();
    if (error == cudaSuccess) error = wgmma_scatter_kernel::prepare_join<Element>();
    if (error == cudaSuccess) error = prepare_stage_lists();
    if (error == cudaSuccess) error = prepare_stage_tiles();
    return error == cudaSuccess ? prepare_stage_values() : error;
  }

  static ListSizes sizes_of(const LaunchArgs& args) {
    return list_sizes(args.rows, args.cols, args.nnzb, args.block_m, args.block_k);
  }

  static size_t layout_bytes(const LaunchArgs& args) {
    return static_cast<size_t>(bytes_of_kept(sizes_of(args), kTileN));
  }

  static cudaError_t lay_out(const LaunchArgs& args, void* to) {
    const auto& rows = static_cast<const ScatteredRows&>(*args.rows_in_chunks);
    return keeps_stages(rows.sizes, kTileN) ? write_stage_tiles(rows.sizes, rows.lists, args.values, to, args.stream)
                                            : copy_stage_values(rows.sizes, rows.lists, args.values, to, args.stream);
  }

  // Of the workspace; behind them the sums of parts and which have NaN.
  static int64_t value_bytes(const LaunchArgs& args, const ListSizes& sizes) {
    return args.laid_out != nullptr ? 0 : sizes.value_bytes();
  }

  static int64_t panels_of(const LaunchArgs& args) { return (args.n + kTileN - 1) / kTileN; }

  // Of all parts.
  static int64_t bytes_of_sums(const LaunchArgs& args, int64_t tiles) {
    return args.cluster > 1 ? wgmma_scatter_kernel::bytes_of_sums(tiles, kTileN) : 0;
  }

  static int ctas_of(const LaunchArgs& args, int64_t tiles) {
    return static_cast<int>(args.cluster > 1 ? tiles : std::min<int64_t>(args.workers, tiles));
  }

  static int64_t bytes_of_nan(const LaunchArgs& args, int64_t tiles) {
    return wgmma_scatter_kernel::bytes_of_nan<FromLayout>(tiles, ctas_of(args, tiles));
  }

  static size_t workspace_bytes(const LaunchArgs& args) {
    const ListSizes sizes = sizes_of(args);
    const int64_t tiles = sizes.groups * panels_of(args) * args.cluster;
    return static_cast<size_t>(value_bytes(args, sizes) + bytes_of_sums(args, tiles) + bytes_of_nan(args, tiles));
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_scatter_kernel;
    const auto& rows = static_cast<const ScatteredRows&>(*args.rows_in_chunks);
    const ListSizes& sizes = rows.sizes;
    k::Params p = {{}, {}, {}, args, rows, k::BoxesOfB::of(args)};
    const bool from_stages = args.laid_out != nullptr && keeps_stages(sizes, kTileN);
    p.values = static_cast<const uint16_t*>(args.laid_out != nullptr ? args.laid_out : args.workspace);
    p.stages = from_stages ? static_cast<const uint8_t*>(args.laid_out) : nullptr;
    // Chunks of fewer than 64 rows have gaps between them in shared memory.
    const int rows_of_box = k::rows_of_box(args, sizes);
    p.boxes.chunks = rows_of_box == k::kStageK ? std::min(p.boxes.chunks, kTileN / k::kChunkColumns) : 1;
    p.groups = static_cast<int32_t>(sizes.groups);
    p.parts = args.cluster;
    p.panels = static_cast<int32_t>(panels_of(args));
    p.tiles = p.groups * p.panels * p.parts;
    char* const sums = static_cast<char*>(args.workspace) + value_bytes(args, sizes);
    p.sums = reinterpret_cast<float4*>(sums);
    char* const with_nan = sums + bytes_of_sums(args, p.tiles);
    p.with_nan = bytes_of_nan(args, p.tiles) > 0 ? reinterpret_cast<uint32_t*>(with_nan) : nullptr;
    const bool any_c = args.b_k_major || args.c_m_major || args.epilogue.input_across;
    const bool columns_by_tma = from_stages ? FromLayout::kColumnsByTma : FromLists::kColumnsByTma;
    p.by_tma = args.c_m_major ? columns_by_tma && can_store_columns_by_tma<Element>(args)
                              : !any_c && can_store_by_tma<Element>(args);
    cudaError_t error = p.boxes.make_map(&p.map_b, args, rows_of_box, p.boxes.chunks);
    if (error == cudaSuccess) error = p.boxes.make_map(&p.map_chunk, args, rows_of_box, /*box_chunks=*/1);
    if (error == cudaSuccess && p.by_tma) {
      error = args.c_m_major ? make_column_store_map(&p.map_c, args) : make_store_map(&p.map_c, args);
    }
    if (error == cudaSuccess && args.laid_out == nullptr) {
      error = copy_stage_values(sizes, rows.lists, args.values, args.workspace, args.stream);
    }
    if (error != cudaSuccess) return error;
    const int ctas = ctas_of(args, p.tiles);
    error = from_stages ? launch_for<LayoutOf>(ctas, p) : launch_for<ListsOf>(ctas, p);
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
  ops.layout_bytes = &K::layout_bytes;
  ops.lay_out = &K::lay_out;
  return ops;
}

}  // namespace sparsek::cuda
