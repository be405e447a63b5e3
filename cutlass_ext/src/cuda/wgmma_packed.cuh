// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_packed": wgmma for small blocks, whose height is a multiple of 4, and blocks of odd width.
//
// Of low blocks, the 128 rows of a tile have most block columns between them. So another kernel first packs A into
// dense tiles (pack_a.h), each of them a stage of this one, with zeros where a row has no block; and the product is as
// fast as that of dense matrices with the columns that the rows have between them.
//
//   A   stage (128, 64), K-major, 128-byte swizzle: one bulk copy
//   B   stage (chunk of 64 columns, 64, 64), N-major, 128-byte swizzle: by TMA, a box of (bk, 64) for each entry of the
//       stage and chunk, or one for each chunk where the entries are neighbours. Rows behind the last entry are zero.
//   C   (M, N):(ldc, 1) through shared memory and bulk stores, or from registers: any rows, M, N, pitch, alignment
//
// Units of 16 columns in which none of a warpgroup's 64 rows has a block are skipped. Zeros times Inf or NaN are NaN:
// a warp computes the groups of 8 columns of its 16 rows with NaN in their sums again (packed_again.cuh).
#pragma once

#include <cuda.h>

#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/pack_a.h"
#include "cuda/packed_again.cuh"
#include "cuda/ring_kernel.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace wgmma_packed_kernel {

using namespace ring_kernel;

static_assert(kPackRows == kTileM && kPackColumns == kStageK && kPackUnit == kUnitK);

constexpr int kChunkBytes = kStageK * kChunkColumns * kElementBytes;
constexpr int kUnitBytesB = kUnitK * kChunkColumns * kElementBytes;
constexpr int kRowBytesB = kChunkColumns * kElementBytes;  // of a chunk
constexpr int kUnitsAt = 8;  // the bit of a stage's `present` from which on it has the number of its units
constexpr int kProducerWarps = kProducers / 32;
constexpr int kStagesAhead = 4;  // the next tile is taken when so many stages of this one are to be loaded

struct Params : Product {
  CUtensorMap map_run;  // as map_b, with boxes of all rows of a stage
  PackSizes sizes;
  PackMemory packed;
  bool multiplies_zeros;
};

struct Own {
  Again again[kConsumerWarps];
  __device__ void init(int) {}
};

template <int Stages>
struct Mainloop;

template <int Stages>
using Storage = SharedStorage<Mainloop<Stages>>;

__device__ inline int stages_of(const Params& p, int entries) {
  return (entries + p.sizes.entries - 1) / p.sizes.entries;
}

// Of a stage: the row of B of each lane's entry. Lanes without one have that of the last.
struct StageOfB {
  int32_t row;
  uint32_t present;

  __device__ StageOfB(const Params& p, const WorkTile& tile, int stage, int lane) {
    const int entry = min(min(stage * p.sizes.entries + lane, (stage + 1) * p.sizes.entries - 1), tile.entry_count - 1);
    row = __ldg(p.args.entry_k + int64_t(tile.entry_begin) + entry);
    present = __ldg(p.packed.present + tile.m_tile * p.sizes.stages_of_group + stage);
  }
};

// By each producer warp: a chunk of 64 columns of B's stages. The first one also loads A, and takes the tiles. The
// boxes of low entries are so many that one warp alone could not issue them in time.
template <int Stages>
__device__ void load(const Params& p, Storage<Stages>& shared, int warp, int lane) {
  static_assert(kProducerWarps == kChunks);
  const LaunchArgs& args = p.args;
  const TileList list = tile_list(args);
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_a = shared_address(shared.a), first_b = shared_address(shared.b) + warp * kChunkBytes;
  const uint32_t first_present = shared_address(shared.present);
  const int entries = p.sizes.entries, rows = p.sizes.columns();
  constexpr auto kOften = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
  RingState<Stages> state;
  TilePlace<kTileDepth> place, taken_place;
  WorkTile tile = first_tile<1, false>(args);
  while (tile.m_tile != kNoTile) {
    const int chunk = tile.n_tile * kChunks + warp, stages = stages_of(p, tile.entry_count);
    const int chunks =
        int(min(int64_t(kChunks), (args.n - int64_t(tile.n_tile) * kTileN + kChunkColumns - 1) / kChunkColumns));
    const char* from = p.packed.tiles + tile.m_tile * p.sizes.stages_of_group * kPackStageBytes;
    const auto take_next = [&] {
      if (warp == 0 && lane == 0) shared.tiles.publish(list, claim_tile(list), taken_place);
      ++taken_place;
      __syncwarp();
    };
    if (stages == 0) {
      take_next();
    } else {
      StageOfB next(p, tile, 0, lane);
#pragma unroll 1
      for (int s = 0; s < stages; ++s, ++state, from += kPackStageBytes) {
        const StageOfB now = next;
        if (s + 1 < stages) next = StageOfB(p, tile, s + 1, lane);
        if (s == max(0, stages - kStagesAhead)) take_next();
        const int32_t first = __shfl_sync(0xffffffffu, now.row, 0);
        const bool run = __all_sync(0xffffffffu, now.row == first + min(lane, entries - 1) * p.sizes.block_k);
        const uint32_t full = first_full + state.stage * kBarrierBytes;
        const uint32_t to_b = first_b + state.stage * kStageBytesB;
        wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
        if (warp == 0 && lane == 0) {
          store_word(first_present + state.stage * 4, now.present);
          arrive_and_expect(full, kPackStageBytes + chunks * rows * kRowBytesB);
          copy_to_shared(first_a + state.stage * kStageBytesA, from, kPackStageBytes, full);
        }
        __syncwarp();
        if (warp < chunks) {
          if (run) {
            if (lane == 0) load_box(p.map_run, full, kOften, to_b, p.boxes.origin(chunk, first));
          } else if (lane < entries) {
            load_box(p.map_b, full, kOften, to_b + lane * p.sizes.block_k * kRowBytesB, p.boxes.origin(chunk, now.row));
          }
        }
      }
    }
    tile = within<1, false>(args, shared.tiles.next(place, lane));
    ++place;
  }
}

// Rows of B that no box brings.
template <int Stages>
__device__ void clear_rest(const Params& p, Storage<Stages>& shared, int thread) {
  const int first = p.sizes.columns() * kRowBytesB, bytes = p.sizes.units * kUnitBytesB - first;
  for (int i = thread * 16; i < bytes; i += kProducers * 16) {
    for (int chunk = 0; chunk < Stages * kChunks; ++chunk) {
      uint8_t* const to = shared.b[chunk / kChunks] + chunk % kChunks * kChunkBytes + first + i;
      *reinterpret_cast<uint4*>(to) = uint4{};
    }
  }
  cutlass::arch::fence_view_async_shared();
}

template <int Stages>
struct Mainloop {
  static constexpr int kSlots = kAnySlots, kStages = Stages, kCtas = 1;
  static constexpr Major kMajorB = Major::MN;
  static constexpr bool kAnyMajorC = false;
  static constexpr bool kMaySplit = false;
  static constexpr NanRule kNan = NanRule::kWarp;
  static constexpr int kChunkBytes = wgmma_packed_kernel::kChunkBytes;
  static constexpr int kTileReaders = kProducerWarps;
  static constexpr int kFullArrivals = 1;
  static constexpr int kProducerRegisters = 72, kConsumerRegisters = 216;
  using Params = wgmma_packed_kernel::Params;
  using Own = wgmma_packed_kernel::Own;

  __device__ static int stages_of(const Params& p, int entries) { return wgmma_packed_kernel::stages_of(p, entries); }
  __device__ static void produce(const Params& p, Storage<Stages>& shared, int) {
    clear_rest(p, shared, threadIdx.x);
    cutlass::arch::NamedBarrier::sync(kProducers, 0);
    load(p, shared, threadIdx.x / 32, threadIdx.x % 32);
  }
  template <class Element>
  __device__ static void add_stages(FullStages<Mainloop>& ring, int warpgroup, int stages, float (&acc)[kGroups][4]) {
    for (; stages > 0; --stages, ++ring.state) {
      ring.wait();
      const uint32_t present = ring.present() >> warpgroup;
      const uint64_t a = ring.a(), b = ring.b();
      int groups = 0;  // committed groups of wgmma instructions
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        if (!(present >> u * 2 & 1)) continue;
        ++groups;  // one group each: ptxas serialises wgmma under different conditions that share a group
        cute::warpgroup_arrive();
        wgmma_ss<Element>(acc, advanced(a, u * kUnitK * kElementBytes), advanced(b, u * kUnitBytesB));
        cute::warpgroup_commit_batch();
      }
      wait_for_all_but<kUnits>(groups);
      ring.release_previous();
      ring.pending = true;
    }
  }
  template <class Element>
  __device__ static void compute_again(const Params& p, Storage<Stages>& shared) {
    const Slab<kAnySlots> slab = own_slab<kAnySlots>();
    __syncwarp();
    const Again again = shared.own.again[slab.warp];
    wgmma_packed_kernel::compute_again<Element>(p.args, p.sizes, p.packed, again.tile, slab, shared.buffers[slab.warp],
                                                again.groups);
  }
};

template <class Element, int Stages>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  run<Element, Mainloop<Stages>>(p);
}

}  // namespace wgmma_packed_kernel

template <class Config>
struct WgmmaPackedKernel {
  static_assert(Config::kTileM == wgmma_packed_kernel::kTileM && Config::kTileN == wgmma_packed_kernel::kTileN &&
                Config::kTileK == wgmma_packed_kernel::kStageK);
  using Element = typename Config::Element;
  static_assert(sizeof(Element) == wgmma_packed_kernel::kElementBytes);
  static constexpr int kSharedBytes = sizeof(wgmma_packed_kernel::Storage<Config::kStages>);
  static constexpr auto kKernel = wgmma_packed_kernel::kernel<Element, Config::kStages>;

  static cudaError_t prepare() {
    const cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    return error == cudaSuccess ? prepare_pack_a() : error;
  }

  static size_t layout_bytes(const LaunchArgs& args) { return static_cast<size_t>(pack_sizes(args).bytes()); }

  static cudaError_t lay_out(const LaunchArgs& args, void* to) {
    const PackSizes sizes = pack_sizes(args);
    return pack_a(args, sizes, {sizes, to});
  }

  static size_t workspace_bytes(const LaunchArgs& args) { return args.laid_out != nullptr ? 0 : layout_bytes(args); }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_packed_kernel;
    const PackSizes sizes = pack_sizes(args);
    const PackMemory packed(sizes, args.laid_out != nullptr ? args.laid_out : args.workspace);
    k::Params p = {{}, {}, sizes, packed, /*multiplies_zeros=*/true};
    cudaError_t error = k::describe<Element>(&p, args, args.block_k, k::kTileM / args.slots >= kStoreRows, 1);
    if (error != cudaSuccess) return error;
    error = p.boxes.make_map(&p.map_run, args, sizes.columns(), 1);
    if (error != cudaSuccess) return error;
    if (args.nnzb > 0 && args.laid_out == nullptr) error = pack_a(args, sizes, packed);
    if (error != cudaSuccess) return error;
    return launch_kernel(kKernel, args.workers, k::kThreads, kSharedBytes, args.stream, {/*overlap=*/true}, p);
  }
};

template <class Config>
constexpr KernelOps wgmma_packed_ops() {
  using K = WgmmaPackedKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/1,
                   /*tensor_cores=*/true,
                   /*tma_b=*/true,
                   /*any_rows=*/true,
                   /*align_values=*/sizeof(typename K::Element),
                   /*any_epilogue=*/true};
  ops.takes_tiles = true;
  ops.workspace_bytes = &K::workspace_bytes;
  ops.most_block = kPackColumns;
  ops.layout_bytes = &K::layout_bytes;
  ops.lay_out = &K::lay_out;
  return ops;
}

}  // namespace sparsek::cuda
