// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_gather": wgmma for every block whose height and width are multiples of 8.
//
// A CTA computes 128 rows of C, a row group of the plan, times 256 columns. The product is cut into units: 16 columns
// of A times 16 rows of B, of one entry of the row group; a stage holds four consecutive units, of one or several
// entries. The producers gather A, 16 bytes a thread, from the blocks that the plan names for each row of the tile, and
// write zeros where a row has no block. So wgmma reads one dense tile, whatever the shape of the blocks. A unit in
// which none of a warpgroup's 64 rows has a block is skipped. exact_rows.cuh keeps the effect of the zeros out of C.
//
//   A   stage (128, 64), K-major, 128-byte swizzle: by cp.async
//   B   stage (unit, chunk of 64 columns, 16, 64), N-major, 128-byte swizzle: by TMA
//   C   (M, N):(ldc, 1) through shared memory and bulk stores, or from registers: any rows, M, N, pitch, alignment;
//       the sums of a part of a tile go to the workspace instead
#pragma once

#include <cuda.h>

#include <cstddef>

#include "collective/tile_queue.hpp"
#include "cuda/dependent_launch.cuh"
#include "cuda/exact_rows.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/tensor_map.h"
#include "cuda/tma_store.cuh"
#include "cuda/wgmma.cuh"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_gather_kernel {

constexpr int kTileM = 128;
constexpr int kTileN = 256;
constexpr int kUnitK = 16;  // columns of A of one wgmma instruction
constexpr int kUnits = 4;   // units of a stage
constexpr int kStageK = kUnits * kUnitK;
constexpr int kChunkColumns = 64;
constexpr int kChunks = kTileN / kChunkColumns;
constexpr int kRowBytesA = kStageK * 2;
constexpr int kStageBytesA = kTileM * kRowBytesA;
constexpr int kChunkBytes = kUnitK * kChunkColumns * 2;
constexpr int kUnitBytesB = kChunks * kChunkBytes;
constexpr int kStageBytesB = kUnits * kUnitBytesB;
constexpr int kGroups = kTileN / 8;  // accumulators of a thread: (kGroups, 4)
constexpr int kConsumerWarps = 8;
constexpr int kProducerWarps = 4;
constexpr int kProducers = kProducerWarps * 32;
constexpr int kThreads = kProducers + kConsumerWarps * 32;
// A producer warp is at most kStages tiles ahead of the consumers, where each tile has one stage.
constexpr int kTileDepth = 4;

// A producer thread copies a vector of 16 bytes of every kRowStep-th row. The swizzle repeats after kSwizzleRows rows.
constexpr int kVectors = kRowBytesA / 16;
constexpr int kUnitVectors = kVectors / kUnits;
constexpr int kRowStep = 32 / kVectors;
constexpr int kCopies = kTileM / kRowStep;
constexpr int kSwizzleRows = 8;

struct Params {
  CUtensorMap map_b;  // (64, K, N / 64) where N is a multiple of 64, else (N, K, 1)
  CUtensorMap map_c;  // (N, M, 1); set if by_tma
  LaunchArgs args;
  int units_per_entry;
  int entry_step, part_step;  // from a unit of a stage to that of the warp's next stage: entries, and units of an entry
  uint32_t block_bytes, row_step_bytes;  // bytes of a block of A; from a producer's row of it to the next
  int box_chunks;                        // chunks of 64 columns that one TMA box of B covers
  bool chunks_are_outer;                 // map_b has a dimension for chunks
  bool by_tma;                           // C is stored by TMA
};

template <int Stages>
struct SharedStorage {
  alignas(1024) uint8_t b[Stages][kStageBytesB];  // (stage, unit, chunk, 16, 64)
  alignas(1024) uint8_t a[Stages][kStageBytesA];  // (stage, 128, 64)
  alignas(1024) StoreBuffers buffers[kConsumerWarps];
  TileQueue<kTileDepth> tiles;
  uint32_t present[Stages];  // bit 8 g + 2 u: one of the rows of warpgroup g has a block in unit u
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

__device__ inline TileList tile_list(const LaunchArgs& args) {
  return {args.tiles, args.tiles_count, args.tiles_taken};
}

// A panel beyond the product's columns has nothing to sum up.
__device__ inline WorkTile within(const LaunchArgs& args, WorkTile tile) {
  if (int64_t(panel_of(tile)) * kTileN >= args.n) tile.entry_count = 0;
  return tile;
}

__device__ inline int stages_of(const Params& p, const WorkTile& tile) {
  return (tile.entry_count * p.units_per_entry + kUnits - 1) / kUnits;
}

// The unit that a producer thread copies: the columns from k on of each slot's block, or kNoBlock where a slot has
// none; and the entry's first row of B, or kNoBlock after the tile's last unit.
template <int Slots>
struct UnitPlan {
  int32_t block[Slots];
  int32_t b_row;
  int k;
};

template <int Slots>
__device__ void load_blocks(const int32_t* entry, int32_t (&block)[Slots]) {
  if constexpr (Slots >= 4) {
#pragma unroll
    for (int j = 0; j < Slots; j += 4) {
      const int4 four = __ldg(reinterpret_cast<const int4*>(entry + j));
      block[j] = four.x, block[j + 1] = four.y, block[j + 2] = four.z, block[j + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int j = 0; j < Slots; ++j) block[j] = __ldg(entry + j);
  }
}

// Copies 16 bytes from global to shared memory; where `here` is false, writes zeros and reads nothing.
__device__ inline void copy_or_clear(uint32_t to, const void* from, bool here) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(here ? 16 : 0) : "memory");
}

// Each producer warp fills one stage of the ring by itself. So the work that is needed once for a stage is done by one
// warp, and while that warp waits for the plan of its next stage the others fill theirs. Lanes are mapped to the
// vectors of A: kVectors side by side in a row, kUnitVectors of them in a unit. The first lane of each unit loads B.
template <int Slots, int Stages>
__device__ void produce(const Params& p, SharedStorage<Stages>& shared, int warp, int lane) {
  static_assert(Stages == kProducerWarps, "each producer warp has one stage");
  constexpr int kSlotRows = kTileM / Slots;
  const LaunchArgs& args = p.args;
  const int vector = lane % kVectors, first_row = lane / kVectors;
  const int unit = vector / kUnitVectors, k_in_unit = vector % kUnitVectors * 8;
  constexpr int kTurns = kSwizzleRows / kRowStep;
  uint32_t to_a[kTurns];
#pragma unroll
  for (int i = 0; i < kTurns; ++i) {
    const int row = first_row + i * kRowStep;
    to_a[i] = cute::cast_smem_ptr_to_uint(shared.a[warp]) + row * kRowBytesA + (vector ^ row) * 16;
  }
  const int box_bytes = p.box_chunks * kChunkBytes;
  auto& full = shared.full[warp];
  const auto barrier = reinterpret_cast<uint64_t*>(&full);
  uint32_t phase = 1;
  int skip = warp;  // stages of the tile before the first one of this warp

  const bool claims = warp == 0 && lane == 0;
  TilePlace<kTileDepth> place, claimed_place;
  WorkTile tile = within(args, load_tile(args.tiles + blockIdx.x));
  while (tile.m_tile != kNoTile) {
    bool publishes = claims;
    const int panel = panel_of(tile);
    const int64_t columns = args.n - int64_t(panel) * kTileN;
    const int chunks = int(max(int64_t(0), min(int64_t(kChunks), (columns + kChunkColumns - 1) / kChunkColumns)));
    const int boxes = (chunks + p.box_chunks - 1) / p.box_chunks;

    // Entry of the next stage to read, and unit within it.
    int entry = (skip * kUnits + unit) / p.units_per_entry, part = (skip * kUnits + unit) % p.units_per_entry;
    UnitPlan<Slots> plan = {};
    const auto read_plan = [&] {
      plan.k = part * kUnitK;
      plan.b_row = kNoBlock;
      if (entry < tile.entry_count) {
        const int64_t at = int64_t(tile.entry_begin) + entry;
        plan.b_row = __ldg(args.entry_k + at);
        load_blocks<Slots>(args.entry_block + at * Slots, plan.block);
      }
      entry += p.entry_step;
      part += p.part_step;
      if (part >= p.units_per_entry) {
        part -= p.units_per_entry;
        ++entry;
      }
    };
    read_plan();
    // For each slot, the bytes from the beginning of a block to the slot's first row: 0 where a slot is a whole block
    // row.
    uint32_t slot_bytes[Slots] = {};
    if (args.block_m != kSlotRows) {
#pragma unroll
      for (int j = 0; j < Slots; ++j) {
        const int64_t row = args.slot_row[int64_t(tile.m_tile) * Slots + j];
        slot_bytes[j] = uint32_t(row) % uint32_t(args.block_m) * args.block_k * 2;
      }
    }

    int stages = stages_of(p, tile) - skip;
    for (; stages > 0; stages -= kProducerWarps, phase ^= 1) {
      // Only kNoBlock has all bits set, so the AND is kNoBlock only where no slot has a block.
      int32_t upper = kNoBlock, lower = kNoBlock;
#pragma unroll
      for (int j = 0; j < (Slots + 1) / 2; ++j) {
        upper &= plan.block[j];
        lower &= plan.block[Slots / 2 + j];
      }
      // The next tile is taken not before it is needed soon, see NextTileSignal: with this warp's last but one stage of
      // the tile, behind whose copies the counter's answer has arrived.
      const bool takes = publishes && stages <= 2 * kProducerWarps;
      uint32_t claimed = 0;
      if (takes) claimed = claim_tile(tile_list(args));
      const bool exists = plan.b_row != kNoBlock;
      constexpr uint32_t kVectorLanes = (1u << kVectors) - 1;
      const uint32_t present = (__ballot_sync(0xffffffffu, exists && upper != kNoBlock) & kVectorLanes) |
                               (__ballot_sync(0xffffffffu, exists && lower != kNoBlock) & kVectorLanes) << kVectors;
      const bool loads_b = exists && first_row == 0 && k_in_unit == 0;
      const int units = __popc(__ballot_sync(0xffffffffu, loads_b));
      shared.empty[warp].wait(phase);
      if (lane == 0) {
        shared.present[warp] = present;
        full.arrive_and_expect_tx(units * boxes * box_bytes);
      }
      __syncwarp();
      if (loads_b) {
        constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
#pragma unroll 1
        for (int box = 0; box < boxes; ++box) {
          const int chunk = panel * kChunks + box * p.box_chunks;
          cute::SM90_TMA_LOAD_3D::copy(&p.map_b, barrier, kHint, shared.b[warp] + unit * kUnitBytesB + box * box_bytes,
                                       p.chunks_are_outer ? 0 : chunk * kChunkColumns, plan.b_row + plan.k,
                                       p.chunks_are_outer ? chunk : 0);
        }
      }
      const int k = plan.k + k_in_unit;
      const bool in_block = exists && k < args.block_k;
      const auto* const values =
          static_cast<const std::byte*>(args.values) + (int64_t(first_row) * args.block_k + k) * 2;
#pragma unroll
      for (int j = 0; j < Slots; ++j) {
        const std::byte* from = values + uint64_t(uint32_t(plan.block[j])) * p.block_bytes + slot_bytes[j];
        const bool here = in_block && plan.block[j] != kNoBlock;
#pragma unroll
        for (int c = 0; c < kCopies / Slots; ++c, from += p.row_step_bytes) {
          const int i = j * (kCopies / Slots) + c;
          copy_or_clear(to_a[i % kTurns] + i / kTurns * kSwizzleRows * kRowBytesA, from, here);
        }
      }
      cutlass::arch::cpasync_barrier_arrive_noinc(barrier);
      read_plan();
      if (takes) {
        shared.tiles.publish(tile_list(args), claimed, claimed_place);
        publishes = false;
      }
    }
    skip = -stages;
    if (publishes) shared.tiles.publish(tile_list(args), claim_tile(tile_list(args)), claimed_place);
    ++claimed_place;
    __syncwarp();
    tile = within(args, shared.tiles.next(place, lane));
    ++place;
  }
}

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

template <class Element, int Slots, int Stages>
__device__ void consume(const Params& p, SharedStorage<Stages>& shared, int warp, int lane) {
  constexpr int kSlotRows = kTileM / Slots;
  const LaunchArgs& args = p.args;
  // The slots of the lane's rows r (half 0) and r + 8 (half 1).
  const auto slot = [&](int half) { return (warp * 16 + half * 8) / kSlotRows; };
  const int warpgroup = warp / 4;
  const uint64_t first_a = wgmma_descriptor_a(cute::cast_smem_ptr_to_uint(shared.a) + warpgroup * 64 * kRowBytesA);
  const uint64_t first_b = wgmma_descriptor_b(cute::cast_smem_ptr_to_uint(shared.b), kChunkBytes);
  RingState<Stages> state;
  const auto release = [&](int stage) {  // after every lane has read it
    __syncwarp();
    if (lane == 0) shared.empty[stage].arrive();
  };

  TilePlace<kTileDepth> place;
  WorkTile tile = within(args, load_tile(args.tiles + blockIdx.x));
  while (tile.m_tile != kNoTile) {
    const int64_t* const rows = args.slot_row + int64_t(tile.m_tile) * Slots;
    prefetch_to_l1(rows + slot(0));
    float acc[kGroups][4] = {};
    bool pending = false;  // wgmma may still read the previous stage
    for (int stages = stages_of(p, tile); stages > 0; --stages, ++state) {
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

    uint32_t row[2];  // rows of C
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      row[h] = uint32_t(__ldg(rows + slot(h))) + (warp * 16 + h * 8) % kSlotRows + lane / 4;
    }
    const uint32_t first_col = panel_of(tile) * kTileN;
    if (const int place = part_of(tile); place >= 0) {
      leave_part<Element>(args, acc, tile, place, {slot(0), slot(1)}, row, first_col, kProducers);
    } else if (any_nan(args, acc, row, first_col, lane)) {
      store_exactly<Element>(args, tile, {slot(0), slot(1)}, row, first_col, first_col + kTileN, lane);
    } else if (p.by_tma) {
      store_rows_by_tma<Element>(p.map_c, alpha_of(args.epilogue), acc, shared.buffers[warp], row[0] - lane / 4,
                                 first_col, lane);
    } else {
      store_rows<Element>(args, acc, row, first_col, lane);
    }
    tile = within(args, shared.tiles.next(place, lane));
    ++place;
  }
  wait_for_stores();
}

template <class Element, int Slots, int Stages>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  if (p.args.parts.sums != nullptr) allow_dependent_launch();  // lets add_parts.cu begin on SMs that become free
  auto& shared = *reinterpret_cast<SharedStorage<Stages>*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(32 + 1);  // arrivals: the copies of each lane, and those of B
      shared.empty[s].init(kConsumerWarps);
    }
    shared.tiles.init(kProducerWarps + kConsumerWarps);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  // The accumulators alone take 128 registers of a consumer thread; a producer holds the blocks of a stage.
  constexpr int kProducerRegisters = Slots <= 8 ? 72 : 88, kConsumerRegisters = Slots <= 8 ? 216 : 208;
  static_assert(kProducerRegisters + 2 * kConsumerRegisters <= 3 * (65536 / kThreads / 8 * 8),
                "a CTA has no more registers than at its launch");
  if (warp < kProducerWarps) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    produce<Slots>(p, shared, warp, lane);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume<Element, Slots>(p, shared, warp - kProducerWarps, lane);
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
    p.chunks_are_outer = args.n % k::kChunkColumns == 0;
    const int64_t all_chunks = args.n / k::kChunkColumns;
    p.box_chunks = !p.chunks_are_outer ? 1 : int(all_chunks < k::kChunks ? all_chunks : k::kChunks);

    const int64_t row_bytes = args.ldb * 2;
    const TensorMapShape shape_b = p.chunks_are_outer ? TensorMapShape{{k::kChunkColumns, args.cols, all_chunks},
                                                                       {row_bytes, k::kChunkColumns * 2}}
                                                      : TensorMapShape{{args.n, args.cols, 1}, {row_bytes, row_bytes}};
    cudaError_t error = make_tensor_map(&p.map_b, args.b, shape_b, {k::kChunkColumns, k::kUnitK, p.box_chunks}, 128);
    if (error != cudaSuccess) return error;
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
  return {&K::prepare,         &K::launch,          /*ctas_per_sm=*/1,     /*tensor_cores=*/true, /*tma_b=*/true,
          /*any_rows=*/true,   /*align_values=*/16, /*any_epilogue=*/true, /*most_cluster=*/1,    /*may_split=*/true,
          /*takes_tiles=*/true};
}

}  // namespace sparsek::cuda
