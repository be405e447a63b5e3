// SPDX-License-Identifier: Apache-2.0
// Kernel family "skinny": products with few columns, as in decoding, where the time is that of reading A once.
//
// A CTA computes 64 rows of C, a row group of the plan, times TileN columns: 16 or 64. A stage of the ring holds BoxK
// columns of the row group's A and the matching rows of B. Two CTAs share an SM, so that one loads while the other
// ends; where B is small, their rings leave room for two CTAs of the next launch. Each of the 4 consumer warps
// multiplies its 16 rows by mma.sync where their block row has a block, so an absent block never reaches C. Where there
// are few tiles, the CTAs of a cluster share each tile along K: a CTA takes its part of the entries, and each warp's
// sums are added up in the shared memory of one CTA, in the order of the parts.
//
//   A   stage (64, BoxK):(BoxK, 1), swizzled over a whole row; by TMA, one copy for each slot that has a block
//   B   stage (BoxK, TileN):(TileN, 1), or (TileN, BoxK):(BoxK, 1) where K is contiguous, swizzled over a whole row; by
//       TMA
//   C   (M, N):(ldc, 1), or :(1, ldc), from registers: any rows, M, N, pitch and alignment
//
// A kernel of its own takes B with K contiguous, and writes C with M contiguous: as x and y of y = x A^T lie.
//
// The kernel may begin while the previous kernel in the stream ends (programmatic dependent launch): it initialises its
// barriers, reads the plan, and waits before it accesses anything else. It lets the next kernel begin when it has
// requested nearly all of its loads. Where the values are static and there is room for the next launch, it waits only
// when it has filled its ring with blocks of A, and lets the next one begin half way.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/cluster_store.cuh"
#include "cuda/column_store.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/mma_sync.cuh"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/tensor_map.h"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"
#include "plan/tile_part.h"

namespace sparsek::cuda {
namespace skinny_kernel {

constexpr int kTileM = 64;
constexpr int kConsumerWarps = kTileM / 16;
constexpr int kThreads = (kConsumerWarps + 1) * 32;
constexpr int kCtasPerSm = 2;
// The number of launches whose CTAs fit on an SM together.
template <int TileN>
constexpr int kLaunches = TileN == 16 ? 2 : 1;
// Whether a kernel that loads A ahead of the wait exists.
template <int TileN>
constexpr bool kMayLoadAhead = kLaunches<TileN> == 2;
// A CTA a tile costs a start for each, which other CTAs of the SM hide where there are enough of them, and spreads the
// tiles evenly. With many short tiles and two CTAs an SM, the starts cost more.
template <int TileN>
constexpr int kMostRounds = kLaunches<TileN> == 2 ? INT32_MAX : 2;
template <int TileN>
constexpr int64_t kLeastElements = kLaunches<TileN> == 2 ? 0 : 4 * kTileM * 64;
template <int TileN>
constexpr int kRingBytes = (kLaunches<TileN> == 2 ? 48 : 96) * 1024;
constexpr int kMostSlots = kTileM / 16;
constexpr int kMostSplit = kConsumerWarps;

struct Params {
  CUtensorMap map_a;  // (bk, bm, nnzb)
  CUtensorMap map_b;  // (N, K, 1), or (K, N, 1) where LaunchArgs::b_k_major
  LaunchArgs args;
  int slot_rows;
  int units_per_entry;  // stages of an entry: bk / BoxK
};

// The work of a CTA: its part of every args.workers-th tile, from tile `worker` on.
struct Work {
  int worker, part;
  WorkTile first;  // tile `worker`, read before all else

  __device__ explicit Work(const LaunchArgs& args)
      : worker(blockIdx.x / args.cluster), part(blockIdx.x % args.cluster), first(load_tile(args.tiles + worker)) {}
  // A tile beyond the columns of C has no entries.
  template <int TileN>
  __device__ WorkTile tile(const LaunchArgs& args, int t) const {
    WorkTile whole = t == worker ? first : load_tile(args.tiles + t);
    if (int64_t(whole.n_tile) * TileN >= args.n) whole.entry_count = 0;
    return tile_part(whole, part, args.cluster);
  }
};

// The number of warps' sums that a CTA receives from the other CTAs of its cluster.
constexpr int foreign_sums(int cluster) { return kConsumerWarps / cluster * (cluster - 1); }
constexpr int kMostForeignSums = foreign_sums(kMostSplit);

template <int BoxK, int TileN>
struct SharedStorage {
  static constexpr int kBytesA = kTileM * BoxK * 2, kBytesB = BoxK * TileN * 2;
  static constexpr int kFit = kRingBytes<TileN> / (kBytesA + kBytesB);
  static constexpr int kStages = kFit < 32 ? kFit : 32;
  alignas(1024) uint8_t a[kStages][kBytesA];  // (stage, 64, BoxK)
  alignas(1024) uint8_t b[kStages][kBytesB];  // (stage, BoxK, TileN)
  // Sums of this CTA's warps from the other parts: (warp and part, group of 8 columns, lane), layout of D in
  // mma_sync.cuh.
  float4 sums[kMostForeignSums][TileN / 8][32];
  uint32_t present[kStages];  // bit s: slot s has a block in the stage
  cutlass::arch::ClusterTransactionBarrier full[kStages];
  cutlass::arch::ClusterBarrier empty[kStages];
  cutlass::arch::ClusterTransactionBarrier sums_there;
};

// The addresses of a ring in shared memory. They are kept in registers, since with pointers the compiler would read the
// rank of the CTA in its cluster for every copy.
struct RingAddress {
  uint32_t a, b, present, full, empty;

  template <class Storage>
  __device__ explicit RingAddress(const Storage& shared)
      : a(shared_address(shared.a)),
        b(shared_address(shared.b)),
        present(shared_address(shared.present)),
        full(shared_address(shared.full)),
        empty(shared_address(shared.empty)) {}
};

// Lane s loads the block of slot s; lane 0 loads B as well. The plan is read 32 entries at a time, one by each lane,
// and 32 entries ahead: otherwise each entry would cost the latency of the read.
template <bool LoadsAhead, bool AnyMajor, int BoxK, int TileN>
__device__ void produce(const Params& p, SharedStorage<BoxK, TileN>& shared, const Work& work, int lane) {
  using Storage = SharedStorage<BoxK, TileN>;
  const LaunchArgs& args = p.args;
  const int slots = args.slots;
  const int slot_bytes = p.slot_rows * BoxK * 2;
  constexpr auto kOnce = uint64_t(cute::TMA::CacheHintSm90::EVICT_FIRST);
  constexpr auto kOften = uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST);
  const RingAddress ring(shared);
  RingState<Storage::kStages> state;
  bool waited = false;
  for (int t = work.worker; t < args.tiles_count; t += args.workers) {
    const WorkTile tile = work.tile<TileN>(args, t);
    int32_t next_block[kMostSlots], next_k = 0;  // the plan of the lane's entry
    const auto read_plan = [&](int first) {
      const int64_t at = int64_t(tile.entry_begin) + first + lane;
      const bool inside = first + lane < tile.entry_count;
      next_k = inside ? __ldg(args.entry_k + at) : 0;
#pragma unroll
      for (int s = 0; s < kMostSlots; ++s) {
        next_block[s] = inside && s < slots ? __ldg(args.entry_block + at * slots + s) : kNoBlock;
      }
    };
    read_plan(0);
    int row_in_block = 0;
    if (args.block_m != p.slot_rows && lane < slots) {
      row_in_block = int(uint32_t(args.slot_row[int64_t(tile.m_tile) * slots + lane]) % uint32_t(args.block_m));
    }
    // The lane's part of an entry that the warp has read.
    struct EntryBlocks {
      int32_t block = kNoBlock;  // of the lane's slot
      uint32_t present = 0;
    };
    const auto blocks_of = [&](const int32_t(&read)[kMostSlots], int e) {
      EntryBlocks entry;
#pragma unroll
      for (int s = 0; s < kMostSlots; ++s) {
        if (s >= slots) continue;
        const int32_t of_slot = __shfl_sync(0xffffffffu, read[s], e);
        entry.present |= uint32_t(of_slot != kNoBlock) << s;
        if (lane == s) entry.block = of_slot;
      }
      return entry;
    };
    const auto load_a = [&](const RingState<Storage::kStages>& at, const EntryBlocks& entry, int part) {
      const uint32_t full = ring.full + at.stage * kBarrierBytes;
      if (lane == 0) {
        wait_for_phase(ring.empty + at.stage * kBarrierBytes, at.phase ^ 1);
        store_word(ring.present + at.stage * sizeof(uint32_t), entry.present);
        arrive_and_expect(full, Storage::kBytesB + __popc(entry.present) * slot_bytes);
      }
      __syncwarp();
      if (entry.block != kNoBlock) {
        load_box(p.map_a, full, kOnce, ring.a + at.stage * Storage::kBytesA + lane * slot_bytes,
                 {part * BoxK, row_in_block, entry.block});
      }
    };
    const auto load_b = [&](const RingState<Storage::kStages>& at, int32_t row) {
      if (lane == 0) {
        const bool across = AnyMajor && args.b_k_major;
        const int column = tile.n_tile * TileN;
        load_box(p.map_b, ring.full + at.stage * kBarrierBytes, kOften, ring.b + at.stage * Storage::kBytesB,
                 {across ? row : column, across ? column : row, 0});
      }
    };
    const bool is_last = t + args.workers >= args.tiles_count;
    const int release_at = LoadsAhead ? tile.entry_count / 2 : tile.entry_count - 1;
    int done = 0, done_units = 0;  // entries that are loaded already, and units of the next one
    if (LoadsAhead && !waited) {
      const int stages = min(Storage::kStages, min(32, tile.entry_count) * p.units_per_entry);
      RingState<Storage::kStages> at;
      for (int i = 0; i < stages; ++i, ++at) {
        load_a(at, blocks_of(next_block, i / p.units_per_entry), i % p.units_per_entry);
      }
      wait_for_previous_launch();
      for (int i = 0; i < stages; ++i, ++state) {
        load_b(state, __shfl_sync(0xffffffffu, next_k, i / p.units_per_entry) + i % p.units_per_entry * BoxK);
      }
      done = stages / p.units_per_entry;
      done_units = stages % p.units_per_entry;
      if (is_last && done > release_at) allow_dependent_launch();
    } else if (!waited) {
      wait_for_previous_launch();
    }
    waited = true;
    for (int first = 0; first < tile.entry_count; first += 32) {
      int32_t blocks[kMostSlots];
#pragma unroll
      for (int s = 0; s < kMostSlots; ++s) blocks[s] = next_block[s];
      const int32_t rows = next_k;
      read_plan(first + 32);
      for (int e = first == 0 ? done : 0; e < min(32, tile.entry_count - first); ++e) {
        // Lets the next kernel read its plan while the last stages arrive: earlier it would take bandwidth from this
        // one, and later it would begin too late. One that loads A ahead needs that time.
        if (is_last && first + e == release_at) allow_dependent_launch();
        const EntryBlocks entry = blocks_of(blocks, e);
        const int32_t b_row = __shfl_sync(0xffffffffu, rows, e);
        for (int part = done_units; part < p.units_per_entry; ++part, ++state) {
          load_a(state, entry, part);
          load_b(state, b_row + part * BoxK);
        }
        done_units = 0;
      }
    }
  }
}

// The offset of byte `byte` of row `row` in an array whose rows of RowBytes (32, 64 or 128) bytes TMA swizzled over
// their length.
template <int RowBytes>
__device__ uint32_t swizzled(int row, int byte) {
  return row * RowBytes + (byte ^ row * RowBytes / 128 % (RowBytes / 16) * 16);
}

// Adds the parts of a warp's sums up in the CTA whose part is warp % cluster. Returns whether that is this CTA.
template <int BoxK, int TileN>
__device__ bool gather_sums(SharedStorage<BoxK, TileN>& shared, float (&acc)[TileN / 8][4], int cluster, int part,
                            int warp, int lane) {
  const int here = warp % cluster, first = warp / cluster * (cluster - 1);
  const auto place = [&](int of_part) { return first + of_part - (of_part > here); };
  cute::cluster_wait();  // until the barriers of the other CTAs are initialised
  if (part != here) {
    const uint32_t barrier = address_in(here, &shared.sums_there);
#pragma unroll
    for (int g = 0; g < TileN / 8; ++g) {
      store_in_cluster(address_in(here, &shared.sums[place(part)][g][lane]), acc[g], barrier);
    }
    return false;
  }
  shared.sums_there.wait(0);
  float all[TileN / 8][4] = {};
  for (int p = 0; p < cluster; ++p) {
#pragma unroll
    for (int g = 0; g < TileN / 8; ++g) {
      const float4 other =
          p == here ? float4{acc[g][0], acc[g][1], acc[g][2], acc[g][3]} : shared.sums[place(p)][g][lane];
      all[g][0] += other.x;
      all[g][1] += other.y;
      all[g][2] += other.z;
      all[g][3] += other.w;
    }
  }
#pragma unroll
  for (int i = 0; i < TileN / 2; ++i) acc[i / 4][i % 4] = all[i / 4][i % 4];
  return true;
}

// acc += the warp's 16 rows of a stage of A by the stage of B. KMajor: the stage of B is (TileN, BoxK).
template <class Element, bool KMajor, int BoxK, int TileN>
__device__ void multiply_stage(float (&acc)[TileN / 8][4], uint32_t stage_a, uint32_t stage_b, int warp, int lane) {
#pragma unroll
  for (int k = 0; k < BoxK; k += 16) {
    uint32_t a[4];
    load_matrices(a, stage_a + swizzled<BoxK * 2>(warp * 16 + lane % 16, k * 2 + lane / 16 * 16));
#pragma unroll
    for (int n = 0; n < TileN; n += 16) {
      uint32_t b[4];
      if constexpr (KMajor) {
        load_matrices(b, stage_b + swizzled<BoxK * 2>(n + lane / 16 * 8 + lane % 8, k * 2 + lane / 8 % 2 * 16));
      } else {
        load_matrices_transposed(b, stage_b + swizzled<TileN * 2>(k + lane % 16, n * 2 + lane / 16 * 16));
      }
      mma_m16n8k16<Element>(acc[n / 8], a, b[0], b[1]);
      mma_m16n8k16<Element>(acc[n / 8 + 1], a, b[2], b[3]);
    }
  }
}

// Stores a warp's 16 rows of a tile in the order that args say.
template <int Groups>
__device__ void store_any_major(const LaunchArgs& args, float (&acc)[Groups][4], const uint32_t (&row)[2],
                                uint32_t first_col, int lane) {
  const RowTile tile = {{row[0], row[1]}, first_col, int(min(int64_t(Groups * 8), args.n - first_col)), lane % 4 * 2};
  store_in_turns<true>(args, acc, tile, 0, [&](const auto& sums, const RowTile& of, uint32_t) {
    with_type(args.epilogue.dtype_c, [&](auto type) {
      using Type = decltype(type);
      args.c_m_major ? write_columns<Type>(args, sums, of) : write<Type>(args, sums, of);
    });
  });
}

template <class Element, bool AnyMajor, int BoxK, int TileN>
__device__ void consume(const Params& p, SharedStorage<BoxK, TileN>& shared, const Work& work, int warp, int lane) {
  using Storage = SharedStorage<BoxK, TileN>;
  const LaunchArgs& args = p.args;
  const int slots = args.slots;
  const int slot = warp * 16 / p.slot_rows;
  const uint32_t smem_a = cute::cast_smem_ptr_to_uint(shared.a), smem_b = cute::cast_smem_ptr_to_uint(shared.b);
  RingState<Storage::kStages> state;
  for (int t = work.worker; t < args.tiles_count; t += args.workers) {
    const WorkTile tile = work.tile<TileN>(args, t);
    const uint32_t first_row = uint32_t(args.slot_row[int64_t(tile.m_tile) * slots + slot]) + warp * 16 % p.slot_rows;
    const uint32_t row[2] = {first_row + lane / 4, first_row + 8 + lane / 4};
    float acc[TileN / 8][4] = {};
    for (int stages = tile.entry_count * p.units_per_entry; stages > 0; --stages, ++state) {
      shared.full[state.stage].wait(state.phase);
      if (read_by_one(&shared.present[state.stage], lane) >> slot & 1) {
        const uint32_t stage_a = smem_a + state.stage * Storage::kBytesA;
        const uint32_t stage_b = smem_b + state.stage * Storage::kBytesB;
        if (AnyMajor && args.b_k_major) {
          multiply_stage<Element, true, BoxK, TileN>(acc, stage_a, stage_b, warp, lane);
        } else {
          multiply_stage<Element, false, BoxK, TileN>(acc, stage_a, stage_b, warp, lane);
        }
      }
      __syncwarp();
      if (lane == 0) shared.empty[state.stage].arrive();
    }
    wait_for_previous_launch();
    if (args.cluster > 1 && !gather_sums(shared, acc, args.cluster, work.part, warp, lane)) continue;
    if constexpr (AnyMajor) {
      store_any_major(args, acc, row, tile.n_tile * TileN, lane);
    } else {
      store_rows<Element>(args, acc, row, tile.n_tile * TileN, lane);
    }
  }
}

template <class Element, int BoxK, int TileN, bool LoadsAhead, bool AnyMajor>
__global__ void __launch_bounds__(kThreads, kCtasPerSm) kernel(const __grid_constant__ Params p) {
  using Storage = SharedStorage<BoxK, TileN>;
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Storage*>(memory);
  const Work work(p.args);
  if (threadIdx.x == 0) {
    cute::prefetch_tma_descriptor(reinterpret_cast<const cute::TmaDescriptor*>(&p.map_a));
    cute::prefetch_tma_descriptor(reinterpret_cast<const cute::TmaDescriptor*>(&p.map_b));
  }
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Storage::kStages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kConsumerWarps);
    }
    shared.sums_there.init(1);
    cutlass::arch::fence_barrier_init();
    if (p.args.cluster > 1)
      shared.sums_there.arrive_and_expect_tx(foreign_sums(p.args.cluster) * sizeof(shared.sums[0]));
  }
  __syncthreads();
  if (p.args.cluster > 1) cute::cluster_arrive();
  if (warp == kConsumerWarps) {
    produce<LoadsAhead, AnyMajor>(p, shared, work, lane);
    if (p.args.cluster > 1) cute::cluster_wait();  // a warp that arrived must also wait
  } else {
    consume<Element, AnyMajor>(p, shared, work, warp, lane);
  }
}

}  // namespace skinny_kernel

template <class Config>
struct SkinnyKernel {
  static_assert(Config::kTileM == skinny_kernel::kTileM && Config::kTileK == 64 &&
                Config::kStages == skinny_kernel::SharedStorage<64, Config::kTileN>::kStages);
  static constexpr bool kMayLoadAhead = skinny_kernel::kMayLoadAhead<Config::kTileN>;
  template <int BoxK, bool LoadsAhead, bool AnyMajor>
  static constexpr auto kKernel =
      skinny_kernel::kernel<typename Config::Element, BoxK, Config::kTileN, LoadsAhead && kMayLoadAhead, AnyMajor>;
  // By [values are static][operands lie in any order].
  template <int BoxK>
  static constexpr decltype(kKernel<BoxK, false, false>) kKernels[2][2] = {
      {kKernel<BoxK, false, false>, kKernel<BoxK, false, true>},
      {kKernel<BoxK, true, false>, kKernel<BoxK, true, true>}};
  template <int BoxK>
  static constexpr int kSharedBytes = sizeof(skinny_kernel::SharedStorage<BoxK, Config::kTileN>);

  template <int BoxK>
  static constexpr bool kFits =
      skinny_kernel::kLaunches<Config::kTileN> * skinny_kernel::kCtasPerSm * (kSharedBytes<BoxK> + 1024) <= 228 * 1024;
  static_assert(kFits<16> && kFits<32> && kFits<64>, "so many CTAs share an SM, each with a reserved KB");

  template <int BoxK>
  static cudaError_t prepare_one() {
    for (const auto& of_values : kKernels<BoxK>) {
      for (const auto kernel : of_values) {
        const cudaError_t error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<BoxK>);
        if (error != cudaSuccess) return error;
      }
    }
    return cudaSuccess;
  }
  static cudaError_t prepare() {
    for (const cudaError_t error : {prepare_one<16>(), prepare_one<32>(), prepare_one<64>()}) {
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  template <int BoxK>
  static cudaError_t launch_one(const LaunchArgs& args) {
    namespace k = skinny_kernel;
    k::Params p;
    p.args = args;
    p.slot_rows = k::kTileM / args.slots;
    p.units_per_entry = args.block_k / BoxK;
    const int ctas = args.workers * args.cluster;
    const int64_t row_bytes_a = int64_t(args.block_k) * 2, row_bytes_b = args.ldb * 2;
    const TensorMapShape shape_a = {{args.block_k, args.block_m, args.nnzb > 0 ? args.nnzb : 1},
                                    {row_bytes_a, row_bytes_a * args.block_m}};
    cudaError_t error = make_tensor_map(&p.map_a, args.values, shape_a, {BoxK, p.slot_rows, 1}, BoxK * 2);
    if (error != cudaSuccess) return error;
    if (args.b_k_major) {
      const TensorMapShape shape_b = {{args.cols, args.n, 1}, {row_bytes_b, row_bytes_b}};
      error = make_tensor_map(&p.map_b, args.b, shape_b, {BoxK, Config::kTileN, 1}, BoxK * 2);
    } else {
      const TensorMapShape shape_b = {{args.n, args.cols, 1}, {row_bytes_b, row_bytes_b}};
      error = make_tensor_map(&p.map_b, args.b, shape_b, {Config::kTileN, BoxK, 1}, Config::kTileN * 2);
    }
    if (error != cudaSuccess) return error;

    const bool any_major = args.b_k_major || args.c_m_major || args.epilogue.input_across;
    const auto kernel = kKernels<BoxK>[args.values_static][any_major];
    return launch_kernel(kernel, ctas, k::kThreads, kSharedBytes<BoxK>, args.stream, {true, args.cluster}, p);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    return args.block_k % 64 == 0   ? launch_one<64>(args)
           : args.block_k % 32 == 0 ? launch_one<32>(args)
                                    : launch_one<16>(args);
  }
};

template <class Config>
constexpr KernelOps skinny_ops() {
  using K = SkinnyKernel<Config>;
  return {&K::prepare,
          &K::launch,
          skinny_kernel::kCtasPerSm,
          /*tensor_cores=*/true,
          /*tma_b=*/true,
          /*any_rows=*/true,
          /*align_values=*/16,
          /*any_epilogue=*/true,
          skinny_kernel::kMostSplit,
          /*may_split=*/false,
          /*takes_tiles=*/false,
          skinny_kernel::kMostRounds<Config::kTileN>,
          skinny_kernel::kLeastElements<Config::kTileN>};
}

}  // namespace sparsek::cuda
