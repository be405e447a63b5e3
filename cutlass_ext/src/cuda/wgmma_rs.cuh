// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_rs": tensor cores by warpgroup and TMA for every block whose height and width are multiples
// of 8.
//
// A CTA computes 128 rows of C, a row group of the plan, times 256 columns. Each of its 2 consumer warpgroups owns 64
// of the rows and multiplies by wgmma m64n256k16 with A in registers: so the four warps of a warpgroup, and the two
// halves of each, may lie in block rows of their own, and where one of them has no block its registers are zero. An
// entry in which a warpgroup has no block at all is skipped. exact_rows.cuh keeps the zeros from being seen in C.
//
//   B   (unit, chunk of 64 columns, BoxK, 64), 128-byte swizzle. A unit is BoxK rows of a block row of B; a stage
//       holds up to 64 / BoxK of them
//   A   (unit, 128, BoxK), swizzle of a whole row; loaded a slot of the row group at a time, where it has a block
//   C   from registers: any rows, M, N, pitch and alignment; of a part of a tile the sums go to the workspace instead
#pragma once

#include <cuda.h>

#include "cuda/dependent_launch.cuh"
#include "cuda/exact_rows.cuh"
#include "cuda/kernel.h"
#include "cuda/launch.cuh"
#include "cuda/load_tile.cuh"
#include "cuda/mma_sync.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_rs_kernel {

constexpr int kTileM = 128;
constexpr int kTileN = 256;
constexpr int kStageK = 64;  // rows of B in a stage
constexpr int kChunkColumns = 64;
constexpr int kChunks = kTileN / kChunkColumns;
constexpr int kStageBytesA = kTileM * kStageK * 2;
constexpr int kStageBytesB = kStageK * kTileN * 2;
constexpr int kSlices = kStageK / 16;  // wgmma instructions of a stage
constexpr int kGroups = kTileN / 8;    // accumulators of a thread: (kGroups, 4)
constexpr int kConsumerWarps = 8;
constexpr int kProducerWarps = 4;
constexpr int kThreads = (kProducerWarps + kConsumerWarps) * 32;

struct Params {
  CUtensorMap map_a;  // (bk, bm, nnzb)
  CUtensorMap map_b;  // (64, K, N / 64) where N is a multiple of 64, else (N, K, 1)
  LaunchArgs args;
  int slot_rows;
  int units_per_entry;
  int last_slices;  // steps of 16 in the last unit of an entry, which stands out over the block
  int units_per_stage;
  int box_chunks;  // chunks of 64 columns that one TMA box of B covers
  bool chunks_are_outer;
};

template <int Stages>
struct SharedStorage {
  alignas(1024) uint8_t b[Stages][kStageBytesB];
  alignas(1024) uint8_t a[Stages][kStageBytesA];
  int turn[kConsumerWarps * 32];  // the tile of each thread; sums and operands leave no register for it
  uint32_t present[Stages];       // bit (unit * slots + slot): the slot has a block there
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

__device__ inline int stages_of(const Params& p, const WorkTile& tile) {
  return (tile.entry_count * p.units_per_entry + p.units_per_stage - 1) / p.units_per_stage;
}

// What a lane of the producer has to load: the block of its slot, and the block row of B that belongs to it, or
// kNoBlock for neither; from column k of the block on.
struct LaneLoad {
  int32_t block, col;
  int k;
};

// A producer warp. Lane u * slots + s knows what slot s has in unit u of a stage, read from the plan some stages ahead:
// L2 answers late where it is busy. The warps share the copies, since each takes about as long to issue as a tensor
// core needs for half an instruction.
template <int BoxK, int Stages>
__device__ void produce(const Params& p, SharedStorage<Stages>& shared, int warp, int lane) {
  constexpr int kUnitBytesA = kTileM * BoxK * 2, kUnitBytesB = kTileN * BoxK * 2;
  constexpr int kAhead = 3;
  const LaunchArgs& args = p.args;
  const int slots = args.slots;
  const int unit = lane / slots, slot = lane % slots;
  const int slot_bytes = p.slot_rows * BoxK * 2;
  const int box_bytes = p.box_chunks * BoxK * kChunkColumns * 2;
  RingState<Stages> state;

  const int end = args.worker_begin[blockIdx.x + 1];
  int t = args.worker_begin[blockIdx.x];
  WorkTile next_tile = t < end ? args.tiles[t] : WorkTile{};
  for (; t < end; ++t) {
    const WorkTile tile = next_tile;
    if (t + 1 < end) next_tile = args.tiles[t + 1];
    const int panel = panel_of(tile);
    const int64_t columns = args.n - int64_t(panel) * kTileN;
    const int chunks = int(min(int64_t(kChunks), (columns + kChunkColumns - 1) / kChunkColumns));
    const int boxes = (chunks + p.box_chunks - 1) / p.box_chunks;

    int entry = unit / p.units_per_entry, part = unit % p.units_per_entry;  // the unit of the lane that is read next
    const auto read_plan = [&] {
      const bool mine = unit < p.units_per_stage && entry < tile.entry_count;
      const int64_t at = tile.entry_begin + entry;
      const LaneLoad load = {mine ? __ldg(args.entry_block + at * slots + slot) : kNoBlock,
                             mine ? __ldg(args.entry_col + at) : kNoBlock, part * BoxK};
      part += p.units_per_stage;
      for (; part >= p.units_per_entry; part -= p.units_per_entry) ++entry;
      return load;
    };
    LaneLoad ahead[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) ahead[i] = read_plan();
    const int row_in_block = int(args.slot_row[int64_t(tile.m_tile) * slots + slot] % args.block_m);
    for (int stages = stages_of(p, tile); stages > 0; --stages, ++state) {
      const LaneLoad now = ahead[0];
#pragma unroll
      for (int i = 0; i + 1 < kAhead; ++i) ahead[i] = ahead[i + 1];
      ahead[kAhead - 1] = read_plan();

      const uint32_t present = __ballot_sync(0xffffffffu, now.block != kNoBlock);
      const int units = __popc(__ballot_sync(0xffffffffu, slot == 0 && now.col != kNoBlock));
      auto& full = shared.full[state.stage];
      if (lane == 0) {
        shared.empty[state.stage].wait(state.phase ^ 1);
        // Each warp arrives, with or without copies of its own: it would else fall behind by a turn of the ring and
        // wait for a phase that is over.
        if (warp == 0) {
          shared.present[state.stage] = present;
          full.arrive_and_expect_tx(units * boxes * box_bytes + __popc(present) * slot_bytes);
        } else {
          full.arrive();
        }
      }
      __syncwarp();
      const auto barrier = reinterpret_cast<uint64_t*>(&full);
      constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
      if (slot == 0 && now.col != kNoBlock && unit % kProducerWarps == warp) {
        uint8_t* const to = shared.b[state.stage] + unit * kUnitBytesB;
        for (int box = 0; box < boxes; ++box) {
          const int chunk = panel * kChunks + box * p.box_chunks;
          cute::SM90_TMA_LOAD_3D::copy(&p.map_b, barrier, kHint, to + box * box_bytes,
                                       p.chunks_are_outer ? 0 : chunk * kChunkColumns, now.col * args.block_k + now.k,
                                       p.chunks_are_outer ? chunk : 0);
        }
      }
      if (now.block != kNoBlock && lane % kProducerWarps == warp) {
        cute::SM90_TMA_LOAD_3D::copy(&p.map_a, barrier, kHint,
                                     shared.a[state.stage] + unit * kUnitBytesA + slot * slot_bytes, now.k,
                                     row_in_block, now.block);
      }
    }
  }
}

// The bits of `present` from bit `first` on; none behind its end.
__device__ inline uint32_t bits_from(uint32_t present, int first) { return __funnelshift_rc(present, 0, first); }

// Where a lane reads A (rows of BoxK elements, swizzled by the length of a row) for ldmatrix, in the first slice: the
// 8 columns of half `half`. Slice s is at the address with 32 s exclusive-or'd to it.
template <int BoxK>
__device__ uint32_t offset_a(int row, int half) {
  constexpr int kRowBytes = BoxK * 2, kVectors = kRowBytes / 16;  // the swizzle permutes the vectors of a row
  return row * kRowBytes + (half ^ row * kRowBytes / 128 % kVectors) * 16;
}

// Waits until at most `groups` of the committed groups of wgmma, which are Most or fewer, are not finished.
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

template <class Element, int BoxK, int Stages>
__device__ void consume(const Params& p, SharedStorage<Stages>& shared, int warp, int lane) {
  constexpr int kUnitBytesA = kTileM * BoxK * 2, kUnitBytesB = kTileN * BoxK * 2;
  constexpr int kUnits = kStageK / BoxK, kUnitSlices = BoxK / 16;
  const LaunchArgs& args = p.args;
  const int slots = args.slots;
  // The slot of the lane's row r, and that of its row r + 8.
  const int lower_slot = warp * 16 / p.slot_rows;
  const auto slot = [&](int half) { return lower_slot + (p.slot_rows == 8 ? half : 0); };
  const int first_slot = warp / 4 * 64 / p.slot_rows, end_slot = (warp / 4 * 64 + 63) / p.slot_rows + 1;
  const uint32_t warpgroup_slots = (1u << end_slot) - (1u << first_slot);
  const uint32_t smem_a = cute::cast_smem_ptr_to_uint(shared.a), smem_b = cute::cast_smem_ptr_to_uint(shared.b);
  const uint32_t lane_a = smem_a + offset_a<BoxK>(warp * 16 + lane % 16, lane / 16);
  RingState<Stages> state;
  const auto release = [&](int stage) {  // when every lane has read it
    __syncwarp();
    if (lane == 0) shared.empty[stage].arrive();
  };

  volatile int& turn = shared.turn[warp * 32 + lane];
  for (turn = args.worker_begin[blockIdx.x]; turn < __ldg(args.worker_begin + blockIdx.x + 1); turn = turn + 1) {
    const WorkTile tile = load_tile(args.tiles + turn);
    prefetch_to_l1(args.tiles + turn + 1);  // behind the last there are other parts of the plan
    const int64_t* const rows = args.slot_row + int64_t(tile.m_tile) * slots;
    prefetch_to_l1(rows + slot(0));  // read when the sums are there, which leave no registers
    float acc[kGroups][4] = {};
    uint32_t a[2][kSlices][4] = {};  // of the stage that wgmma reads, and of the one before
    bool pending = false;            // wgmma reads the stage before
    int part = 0;                    // of the entry, where a stage holds one unit
    int stages = stages_of(p, tile);
    const auto multiply_stage = [&](uint32_t(&a_now)[kSlices][4]) {
      shared.full[state.stage].wait(state.phase);
      const uint32_t present = read_by_one(&shared.present[state.stage], lane);
      uint32_t loaded[kSlices][4];
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        const bool here[2] = {bool(bits_from(present, u * slots + slot(0)) & 1),
                              bool(bits_from(present, u * slots + slot(1)) & 1)};
#pragma unroll
        for (int s = 0; s < kUnitSlices; ++s) {
          uint32_t r[4] = {};
          if (here[0] || here[1]) {
            load_matrices(r, (lane_a ^ s * 32) + state.stage * kStageBytesA + u * kUnitBytesA);
          }
#pragma unroll
          for (int i = 0; i < 4; ++i) loaded[u * kUnitSlices + s][i] = here[i % 2] ? r[i] : 0;
        }
      }
#pragma unroll
      for (int i = 0; i < kSlices * 4; ++i) {
        replace_in_flight(a_now[i / 4][i % 4], loaded[i / 4][i % 4], p.units_per_stage);
      }
      const uint32_t stage_b = smem_b + state.stage * kStageBytesB;
      int groups = 0;  // of wgmma instructions, committed together
      const auto multiply_slices = [&](int u, int first, auto count) {
        ++groups;
        cute::warpgroup_arrive();
#pragma unroll
        for (int s = first; s < first + decltype(count)::value; ++s) {
          wgmma_rs<Element>(acc, a_now[u * kUnitSlices + s],
                            wgmma_descriptor_b(stage_b + u * kUnitBytesB + s * 16 * 128, BoxK * 128));
        }
        cute::warpgroup_commit_batch();
      };
      const bool cut = kUnits == 1 && ++part == p.units_per_entry && p.last_slices < kSlices;
      if (part == p.units_per_entry) part = 0;
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        if ((bits_from(present, u * slots) & warpgroup_slots) == 0) continue;
        if (!cut) {
          multiply_slices(u, 0, cute::Int<kUnitSlices>());
          continue;
        }
        if constexpr (kUnits == 1) {
#pragma unroll
          for (int s = 0; s < kUnitSlices - 1; ++s) {
            if (s < p.last_slices) multiply_slices(u, s, cute::_1());
          }
        }
      }
      // The stage before is read to its end: its place in the ring is free, and its registers of A.
      wait_for_all_but<kSlices>(groups);
      if (pending) release(state.previous());
      pending = true;
      ++state;
    };
    while (stages > 0) {
      multiply_stage(a[0]);
      if (--stages == 0) break;
      multiply_stage(a[1]);
      --stages;
    }
    cute::warpgroup_wait<0>();
    wgmma_fence(acc);
    if (pending) release(state.previous());

    uint32_t row[2];  // of C
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      row[h] = uint32_t(__ldg(rows + slot(h))) + (warp * 16 + h * 8) % p.slot_rows + lane / 4;
    }
    const uint32_t first_col = panel_of(tile) * kTileN;
    if (const int place = part_of(tile); place >= 0) {
      leave_part<Element>(args, acc, args.tiles[turn], place, {slot(0), slot(1)}, row, first_col, kProducerWarps * 32);
    } else if (any_nan(args, acc, row, first_col, lane)) {
      store_exactly<Element>(args, args.tiles[turn], {slot(0), slot(1)}, row, first_col, first_col + kTileN, lane);
    } else {
      store_rows<Element>(args, acc, row, first_col, lane);
    }
  }
}

template <class Element, int BoxK, int Stages>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  if (p.args.parts.sums != nullptr) allow_dependent_launch();  // of add_parts.cu, which fills SMs as they become free
  auto& shared = *reinterpret_cast<SharedStorage<Stages>*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(kProducerWarps);
      shared.empty[s].init(kConsumerWarps);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  // The accumulators alone take 128 registers of a consumer thread.
  if (warp < kProducerWarps) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    produce<BoxK>(p, shared, warp, lane);
  } else {
    cutlass::arch::warpgroup_reg_alloc<232>();
    consume<Element, BoxK>(p, shared, warp - kProducerWarps, lane);
  }
}

// Rows of B in a unit: as many as possible, unless more than an eighth of what is loaded would lie behind the block.
inline int choose_box_k(int block_k) {
  for (const int box_k : {64, 32}) {
    const int loaded = (block_k + box_k - 1) / box_k * box_k;
    if ((loaded - block_k) * 8 <= loaded) return box_k;
  }
  return 16;
}

}  // namespace wgmma_rs_kernel

template <class Config>
struct WgmmaRsKernel {
  static_assert(Config::kTileM == wgmma_rs_kernel::kTileM && Config::kTileN == wgmma_rs_kernel::kTileN &&
                Config::kTileK == wgmma_rs_kernel::kStageK);
  using Storage = wgmma_rs_kernel::SharedStorage<Config::kStages>;
  static constexpr int kSharedBytes = sizeof(Storage);

  template <int BoxK>
  static constexpr auto kKernel = wgmma_rs_kernel::kernel<typename Config::Element, BoxK, Config::kStages>;

  static cudaError_t prepare() {
    for (const auto kernel : {kKernel<16>, kKernel<32>, kKernel<64>}) {
      const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_rs_kernel;
    const int box_k = k::choose_box_k(args.block_k);
    k::Params p;
    p.args = args;
    p.slot_rows = k::kTileM / args.slots;
    p.units_per_entry = (args.block_k + box_k - 1) / box_k;
    p.last_slices = (args.block_k - (p.units_per_entry - 1) * box_k + 15) / 16;
    const int lanes_limit = 32 / args.slots;  // a lane a slot and unit
    p.units_per_stage = k::kStageK / box_k < lanes_limit ? k::kStageK / box_k : lanes_limit;
    p.chunks_are_outer = args.n % k::kChunkColumns == 0;
    const int64_t all_chunks = args.n / k::kChunkColumns;
    p.box_chunks = !p.chunks_are_outer ? 1 : int(all_chunks < k::kChunks ? all_chunks : k::kChunks);

    const int64_t row_bytes_a = int64_t(args.block_k) * 2, row_bytes_b = args.ldb * 2;
    const TensorMapShape shape_a = {{args.block_k, args.block_m, args.nnzb > 0 ? args.nnzb : 1},
                                    {row_bytes_a, row_bytes_a * args.block_m}};
    cudaError_t error = make_tensor_map(&p.map_a, args.values, shape_a, {box_k, p.slot_rows, 1}, box_k * 2);
    if (error != cudaSuccess) return error;
    const TensorMapShape shape_b =
        p.chunks_are_outer
            ? TensorMapShape{{k::kChunkColumns, args.cols, all_chunks}, {row_bytes_b, k::kChunkColumns * 2}}
            : TensorMapShape{{args.n, args.cols, 1}, {row_bytes_b, row_bytes_b}};
    error = make_tensor_map(&p.map_b, args.b, shape_b, {k::kChunkColumns, box_k, p.box_chunks}, 128);
    if (error != cudaSuccess) return error;
    const auto kernel = box_k == 64 ? kKernel<64> : box_k == 32 ? kKernel<32> : kKernel<16>;
    return launch_kernel(kernel, args.workers, k::kThreads, kSharedBytes, args.stream, {}, p);
  }
};

template <class Config>
constexpr KernelOps wgmma_rs_ops() {
  using K = WgmmaRsKernel<Config>;
  return {&K::prepare,       &K::launch,        /*ctas_per_sm=*/1,   /*tensor_cores=*/true, /*tma_b=*/true,
          /*tma_c=*/false,   /*any_rows=*/true, /*align_values=*/16, /*any_epilogue=*/true, /*most_cluster=*/1,
          /*may_split=*/true};
}

}  // namespace sparsek::cuda
