// SPDX-License-Identifier: Apache-2.0
// Kernel family "dmma": fp64 on its tensor cores, for blocks of multiples of 8 x 8. Numbers of fp32 are multiplied and
// summed up there as fp64. That takes no longer than on the ordinary cores, and unlike planes it needs no copies of A
// and B.
//
// A CTA computes 64 rows of C, a row group of the plan, times TileN columns: 128, 64 or 32. A stage of the ring holds
// 16 columns of the row group's A, and the matching rows of B. Each warp has 32 columns by a part of the rows, and
// multiplies those units of 8 rows that have a block, so an absent block never reaches C. The warps start the copies of
// the stages in turn, each when it has read one: a warp for that alone would take registers from the others. CTAs share
// an SM, so that one multiplies while another waits or stores.
//
//   A   stage (64, 16):(16, 1), rows swizzled over their bytes, 128 or 64; by TMA, one copy for each slot that has a
//       block
//   B   stage (TileN / c, 16, c):(16 c, c, 1), where c columns have 128 bytes, over which rows are swizzled; by TMA
//   C   (M, N):(ldc, 1) by way of shared memory: any rows, M, N, pitch and alignment
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "cuda/dependent_launch.cuh"
#include "cuda/dmma_stage.cuh"
#include "cuda/epilogue_fp64.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/tensor_map.h"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace dmma_kernel {

constexpr uint32_t kNarrow = 1u << 8;

struct Params {
  CUtensorMap map_a;  // (bk, bm, nnzb)
  CUtensorMap map_b;  // (chunk, K, chunks) where N is a multiple of a chunk's columns, else (N, K, 1)
  LaunchArgs args;
  int slot_rows;
  int units_of_entry;     // stages of an entry
  int chunks_of_box;      // of B
  bool chunks_are_outer;  // map_b has a dimension for chunks
};

// Sets what concerns B. Without rows of B, `none` is an address of device memory, of which nothing is read.
template <class Element, class AnyParams>
cudaError_t make_map_of_b(AnyParams& p, int tile_n, const void* none) {
  using F = Format<Element>;
  const LaunchArgs& args = p.args;
  constexpr int kColumns = F::kChunkColumns, kBox = kColumns * F::kWords;
  const int64_t row_bytes = args.ldb * int64_t(sizeof(Element)), chunks = args.n / kColumns;
  const int64_t rows = args.cols > 0 ? args.cols : 1;
  p.chunks_are_outer = args.n % kColumns == 0;
  p.chunks_of_box = p.chunks_are_outer ? int(chunks < tile_n / kColumns ? chunks : tile_n / kColumns) : 1;
  const TensorMapShape shape = p.chunks_are_outer
                                   ? TensorMapShape{{kBox, rows, chunks}, {row_bytes, kRowBytesB}}
                                   : TensorMapShape{{args.n * F::kWords, rows, 1}, {row_bytes, row_bytes}};
  return make_tensor_map(&p.map_b, args.cols > 0 ? args.b : none, shape, {kBox, kStageK, p.chunks_of_box}, kRowBytesB);
}

template <int TileN>
constexpr int kWarpsAcross = TileN / kColumnsOfWarp;
template <int TileN>
constexpr int kWarps = TileN == 128 ? 8 : 4;
template <int TileN>
constexpr int kCtasPerSm = TileN == 64 ? 3 : 2;
template <int TileN>
constexpr int kUnits = kTileM / kUnitRows * kWarpsAcross<TileN> / kWarps<TileN>;  // of 8 rows, of a warp

// What a thread keeps of the copies that its warp starts next. In shared memory: there are no registers for it.
struct alignas(16) Turn {
  int32_t unit, entry, end;  // the stage of the entry; the entry, and the end of the tile's
  int32_t row_in_block;
  int32_t block, row;  // of the entry: the block of the lane's slot, the first row of B
  int32_t chunk;       // of C, of the lane's box
  int32_t boxes;       // of B
};

template <class ElementOfStages, int TileN, int Stages, class TurnOfThread = Turn>
struct SharedStorage {
  using Element = ElementOfStages;
  static constexpr int kStages = Stages, kBytesA = Format<Element>::kBytesA;
  static constexpr int kBytesB = TileN / Format<Element>::kChunkColumns * kChunkBytes;
  alignas(1024) uint8_t a[Stages][kBytesA];
  alignas(1024) uint8_t b[Stages][kBytesB];
  uint32_t present[Stages];  // bit i: rows 8 i to 8 i + 7 have a block; kNarrow: 8 columns of A
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
  TurnOfThread turns[32 * kWarps<TileN>];

  // The places of a stage, from the address of all.
  __device__ static uint32_t a_at(uint32_t base, int stage) { return base + stage * kBytesA; }
  __device__ static uint32_t b_at(uint32_t base, int stage) { return base + Stages * kBytesA + stage * kBytesB; }
  __device__ static uint32_t present_at(uint32_t base, int stage) { return b_at(base, Stages) + stage * 4; }
  __device__ static uint32_t full_at(uint32_t base, int stage) {
    return base + uint32_t(offsetof(SharedStorage, full)) + stage * kBarrierBytes;
  }
  __device__ static uint32_t empty_at(uint32_t base, int stage) {
    return base + uint32_t(offsetof(SharedStorage, empty)) + stage * kBarrierBytes;
  }
};

// A warp's sums on their way to C: rows, with gaps against conflicts.
constexpr int kPitchOfSums = kColumnsOfWarp + 4;
template <class Element, int TileN>
constexpr int kBytesOfSums = kWarps<TileN> * kUnits<TileN> * kUnitRows * kPitchOfSums * int(sizeof(Element));

// The copies that a warp starts of a tile: those of every kWarps-th stage. Lane s has the blocks of slot s. The plan is
// read one such stage ahead.
template <int Warps, class Storage>
struct Copies {
  using F = Format<typename Storage::Element>;
  static constexpr int kStages = Storage::kStages;
  static_assert((kStages & (kStages - 1)) == 0);
  const Params& p;
  const uint32_t base;  // of shared memory
  const uint32_t end;   // of the tile's stages, which are counted from the CTA's first tile on
  uint32_t next;        // the warp's next one
  Turn& turn;           // the thread's, of that stage

  __device__ Copies(const Params& params, Storage& shared, uint32_t of_shared, const WorkTile& tile, uint32_t begin,
                    int boxes)
      : p(params),
        base(of_shared),
        end(begin + tile.entry_count * params.units_of_entry),
        next(begin + threadIdx.x / 32),
        turn(shared.turns[threadIdx.x]) {
    const LaunchArgs& args = p.args;
    const int lane = threadIdx.x % 32, first_stage = threadIdx.x / 32;
    Turn now = {first_stage % p.units_of_entry,
                tile.entry_begin + first_stage / p.units_of_entry,
                tile.entry_begin + tile.entry_count,
                0,
                kNoBlock,
                0,
                tile.n_tile * (Storage::kBytesB / kChunkBytes) + lane,
                boxes};
    if (args.block_m != p.slot_rows && lane < args.slots) {
      const int64_t first = args.slot_row[int64_t(tile.m_tile) * args.slots + lane];
      now.row_in_block = int32_t(uint32_t(first) % uint32_t(args.block_m));
    }
    read(now, lane);
    turn = now;
  }

  __device__ void read(Turn& now, int lane) const {
    const LaunchArgs& args = p.args;
    const bool inside = now.entry < now.end;
    now.row = inside ? __ldg(args.entry_k + now.entry) : 0;
    now.block =
        inside && lane < args.slots ? __ldg(args.entry_block + int64_t(now.entry) * args.slots + lane) : kNoBlock;
  }

  // Starts those of the warp's next stage if it is before `limit`.
  __device__ void start(uint32_t limit) {
    if (next >= min(limit, end)) return;
    const int lane = threadIdx.x % 32;
    Turn now = turn;
    const uint32_t slots = __ballot_sync(0xffffffffu, now.block != kNoBlock);
    const uint32_t slot_bytes = p.slot_rows * F::kRowBytesA;
    const int stage = next % kStages, column = now.unit * kStageK;
    const uint32_t full = Storage::full_at(base, stage);
    if (lane == 0) {
      wait_for_phase(Storage::empty_at(base, stage), next / kStages % 2 ^ 1);
      store_word(Storage::present_at(base, stage), units_of(slots) | (p.args.block_k - column < kStageK ? kNarrow : 0));
      arrive_and_expect(full, now.boxes * p.chunks_of_box * kChunkBytes + __popc(slots) * slot_bytes);
    }
    __syncwarp();
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
    if (now.block != kNoBlock) {
      load_box(p.map_a, full, kHint, Storage::a_at(base, stage) + lane * slot_bytes,
               {column * F::kWords, now.row_in_block, now.block});
    }
    if (lane < now.boxes) {
      load_box(p.map_b, full, kHint, Storage::b_at(base, stage) + lane * kChunkBytes,
               {p.chunks_are_outer ? 0 : now.chunk * F::kChunkColumns * F::kWords, now.row + column,
                p.chunks_are_outer ? now.chunk : 0});
    }
    next += Warps;
    for (now.unit += Warps; now.unit >= p.units_of_entry; now.unit -= p.units_of_entry) ++now.entry;
    read(now, lane);
    turn = now;
  }

  // From bits of slots to those of 8 rows each.
  __device__ uint32_t units_of(uint32_t slots) const {
    if (p.slot_rows == 8) return slots;
    const int width = p.slot_rows / 8;
    uint32_t units = 0;
#pragma unroll
    for (int s = 0; s < kTileM / 16; ++s) units |= (slots >> s & 1) * ((1u << width) - 1) << s * width;
    return units & 0xff;
  }
};

// All stages of a tile. MayBeNarrow: some have 8 columns of A.
template <int TileN, class Storage, bool MayBeNarrow, class CopiesOfA>
__device__ inline void add_stages(CopiesOfA& copies, uint32_t& number, int warp, int lane,
                                  double (&acc)[kUnits<TileN>][kMmasAcross][4]) {
  using Element = typename Storage::Element;
  using F = Format<Element>;
  constexpr int kAcross = kWarpsAcross<TileN>, kOwn = kUnits<TileN>, kAll = (1 << kOwn) - 1;
  constexpr int kStages = Storage::kStages;
  const int first_unit = warp / kAcross * kOwn;
  const uint32_t own_a = first_unit * F::kUnitBytes, own_b = warp % kAcross * F::kChunksOfWarp * kChunkBytes;
#pragma unroll 1
  for (; number != copies.end; ++number) {
    const int stage = number % kStages;
    wait_for_phase(Storage::full_at(copies.base, stage), number / kStages % 2);
    const uint32_t word = load_word(Storage::present_at(copies.base, stage)), present = word >> first_unit & kAll;
    const uint32_t stage_a = Storage::a_at(copies.base, stage) + own_a;
    const uint32_t stage_b = Storage::b_at(copies.base, stage) + own_b;
    if (MayBeNarrow && (word & kNarrow) != 0) {
      add_stage<false, true>(Element{}, stage_a, stage_b, present, lane, acc);
    } else if (present == kAll) {
      add_stage<true, false>(Element{}, stage_a, stage_b, present, lane, acc);
    } else {
      add_stage<false, false>(Element{}, stage_a, stage_b, present, lane, acc);
    }
    __syncwarp();
    if (lane == 0) arrive_in_cluster<1>(Storage::empty_at(copies.base, stage));
    copies.start(number + kStages);
  }
}

// Writes a warp's sums to its part of shared memory, (rows, 32 columns):(kPitchOfSums, 1), which nothing else uses
// meanwhile.
template <class Element, int Units>
__device__ inline void sums_to_shared(const double (&acc)[Units][kMmasAcross][4], Element* own, int lane) {
#pragma unroll
  for (int u = 0; u < Units; ++u) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      Element* const to =
          own + (u * kUnitRows + row_at(lane % 4 * 2 + i)) * kPitchOfSums + lane / 4 * (16 / sizeof(Element));
      if constexpr (sizeof(Element) == 8) {
#pragma unroll
        for (int m = 0; m < kMmasAcross; ++m) {
          *reinterpret_cast<double2*>(to + m * kColumnsOfMma) = {acc[u][m][i], acc[u][m][2 + i]};
        }
      } else {
        *reinterpret_cast<float4*>(to) = {float(acc[u][0][i]), float(acc[u][0][2 + i]), float(acc[u][1][i]),
                                          float(acc[u][1][2 + i])};
      }
    }
  }
  __syncwarp();
}

// Whether C is alpha times the sums, of their type.
template <class Element>
__device__ bool is_plain(const Epilogue& e) {
  return e.beta == 0.f && e.bias_kind == BiasKind::kNone && e.activation == Activation::kNone &&
         (sizeof(Element) == 8 || e.dtype_c == ElementType::kFp32);
}

// A warp's sums of a tile to C, by way of `own`.
template <int TileN, class Element, int Units>
__device__ void store_sums(const Params& p, const WorkTile& tile, const double (&acc)[Units][kMmasAcross][4],
                           Element* own, int warp, int lane) {
  const LaunchArgs& args = p.args;
  sums_to_shared(acc, own, lane);
  const int64_t col = int64_t(tile.n_tile) * TileN + warp % kWarpsAcross<TileN> * kColumnsOfWarp + lane;
  if (col >= args.n) return;
  const int first = warp / kWarpsAcross<TileN> * Units;  // unit of the tile
  const bool plain = is_plain<Element>(args.epilogue);
  const Element alpha = alpha_of(args.epilogue);
#pragma unroll 1
  for (int u = 0; u < Units; ++u) {
    const int in_tile = (first + u) * kUnitRows;
    const int64_t begin =
        args.slot_row[int64_t(tile.m_tile) * args.slots + in_tile / p.slot_rows] + in_tile % p.slot_rows;
    const Element* const from = own + u * kUnitRows * kPitchOfSums + lane;
    const int count = int(min(int64_t(kUnitRows), args.rows - begin));
    if (plain) {
      Element* const to = static_cast<Element*>(args.c) + begin * args.ldc + col;
#pragma unroll
      for (int i = 0; i < kUnitRows; ++i) {
        if (i < count) __stcs(to + i * args.ldc, alpha * from[i * kPitchOfSums]);
      }
    } else {
#pragma unroll 1
      for (int i = 0; i < count; ++i) write_element(args, begin + i, col, from[i * kPitchOfSums]);
    }
  }
}

// Makes the barriers of a CTA's ring. Nothing before this touches memory of other kernels.
template <int TileN, class Storage>
__device__ inline void begin(Storage& shared) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < Storage::kStages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kWarps<TileN>);
    }
    cutlass::arch::fence_barrier_init();
  }
  wait_for_previous_launch();
  __syncthreads();
}

// Multiplies the stages of a tile, and calls `store` with a warp's sums and its part of shared memory for them.
template <int TileN, class Storage, bool MayBeNarrow, class CopiesOfA, class Store>
__device__ inline void compute_tile(CopiesOfA& copies, uint8_t* memory, uint32_t& number, int warp, int lane,
                                    const Store& store) {
  using Element = typename Storage::Element;
  constexpr int kStages = Storage::kStages, kBytesOfWarp = kBytesOfSums<Element, TileN> / kWarps<TileN>;
  static_assert(kBytesOfSums<Element, TileN> <= kStages * (Storage::kBytesA + Storage::kBytesB),
                "sums take the place of stages");
  for (int s = 0; s < kStages - 1; s += kWarps<TileN>) copies.start(number + kStages - 1);
  double acc[kUnits<TileN>][kMmasAcross][4] = {};
  add_stages<TileN, Storage, MayBeNarrow>(copies, number, warp, lane, acc);
  __syncthreads();  // all stages have been read
  store(acc, reinterpret_cast<Element*>(memory + warp * kBytesOfWarp));
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();  // the sums have been read
}

template <class Element, int TileN, int Stages>
__global__ void __launch_bounds__(32 * kWarps<TileN>, kCtasPerSm<TileN>) kernel(const __grid_constant__ Params p) {
  using Storage = SharedStorage<Element, TileN, Stages>;
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Storage*>(memory);
  const LaunchArgs& args = p.args;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  begin<TileN>(shared);
  const uint32_t base = shared_address(memory);
  uint32_t number = 0;  // of the next stage
  for (int t = blockIdx.x; t < args.tiles_count; t += gridDim.x) {
    const WorkTile tile = load_tile(args.tiles + t);
    const int64_t columns = args.n - int64_t(tile.n_tile) * TileN;
    if (columns <= 0) continue;
    constexpr int kColumns = Format<Element>::kChunkColumns;
    const int chunks = int(min(int64_t(TileN), columns) + kColumns - 1) / kColumns;
    const int boxes = (chunks + p.chunks_of_box - 1) / p.chunks_of_box;
    Copies<kWarps<TileN>, Storage> copies(p, shared, base, tile, number, boxes);
    compute_tile<TileN, Storage, /*MayBeNarrow=*/true>(
        copies, memory, number, warp, lane,
        [&](const auto& acc, Element* own) { store_sums<TileN>(p, tile, acc, own, warp, lane); });
  }
}

}  // namespace dmma_kernel

template <class Config>
struct DmmaKernel {
  static_assert(Config::kTileM == dmma_kernel::kTileM && Config::kTileK == dmma_kernel::kStageK);
  using Element = typename Config::Element;
  static constexpr auto kKernel = dmma_kernel::kernel<Element, Config::kTileN, Config::kStages>;
  static constexpr int kSharedBytes = sizeof(dmma_kernel::SharedStorage<Element, Config::kTileN, Config::kStages>);
  static_assert(dmma_kernel::kCtasPerSm<Config::kTileN> * (kSharedBytes + 1024) <= 228 * 1024);

  static cudaError_t prepare() {
    return cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = dmma_kernel;
    using F = k::Format<Element>;
    k::Params p;
    p.args = args;
    p.slot_rows = k::kTileM / args.slots;
    p.units_of_entry = (args.block_k + k::kStageK - 1) / k::kStageK;
    const int64_t row_bytes = int64_t(args.block_k) * int64_t(sizeof(Element));
    const TensorMapShape shape_a = {{int64_t(args.block_k) * F::kWords, args.block_m, args.nnzb > 0 ? args.nnzb : 1},
                                    {row_bytes, row_bytes * args.block_m}};
    cudaError_t error =
        make_tensor_map(&p.map_a, args.values, shape_a, {k::kStageK * F::kWords, p.slot_rows, 1}, F::kRowBytesA);
    if (error != cudaSuccess) return error;
    error = k::make_map_of_b<Element>(p, Config::kTileN, args.b);
    if (error != cudaSuccess) return error;
    return launch_kernel(kKernel, args.workers, 32 * k::kWarps<Config::kTileN>, kSharedBytes, args.stream,
                         {/*overlap=*/true}, p);
  }
};

template <class Config>
constexpr KernelOps dmma_ops() {
  using K = DmmaKernel<Config>;
  return {&K::prepare,
          &K::launch,
          dmma_kernel::kCtasPerSm<Config::kTileN>,
          /*tensor_cores=*/false,  // none that cut sums off
          /*tma_b=*/true,
          /*any_rows=*/true,
          /*align_values=*/16,
          /*any_epilogue=*/true,
          /*most_cluster=*/1,
          /*may_split=*/false,
          /*takes_tiles=*/false,
          /*most_rounds=*/INT32_MAX};
}

}  // namespace sparsek::cuda
