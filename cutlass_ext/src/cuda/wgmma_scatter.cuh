// SPDX-License-Identifier: Apache-2.0
// Kernel family "wgmma_scatter": wgmma for blocks of any size up to 64 x 64, single nonzeros too, by many columns.
//
// A is read sparse and multiplied dense. Of small blocks, the 128 rows of a tile have most columns of A between them,
// so the product takes little longer than a dense one of these columns. Two kernels first list A's elements by stages
// (stage_lists.h). Producer warps read these lists and write the elements to their places in a dense tile in shared
// memory, whose rest is zero. Stages in which no row of the tile has a block are left out.
//
//   A   stage (128, 64), K-major, 128-byte swizzle, written by the producer warps, 32 rows each
//   B   stage (chunk of 64 columns, 64, 64), N-major, 128-byte swizzle: by TMA. Rows behind the stage's columns are
//   zero. C   (M, N):(ldc, 1) through shared memory and bulk stores, or from registers: any rows, M, N, pitch,
//   alignment
//
// Zeros times Inf or NaN are NaN: a warp computes the groups of 8 columns of its 16 rows with NaN in their sums again
// (scatter_again.cuh).
#pragma once

#include <cuda.h>

#include <algorithm>

#include "cuda/chunk_args.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/nan_sums.cuh"
#include "cuda/ring.cuh"
#include "cuda/ring_tile.cuh"
#include "cuda/row_store.cuh"
#include "cuda/scatter_again.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/stage_lists.h"
#include "cuda/tma_store.cuh"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/barrier.h"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

using ring_kernel::BoxesOfB;
using ring_kernel::kChunkColumns;
using ring_kernel::kElementBytes;
using ring_kernel::kStageBytesA;
using ring_kernel::kStageK;
using ring_kernel::kTileM;
using ring_kernel::kUnitK;
using ring_kernel::kUnits;

static_assert(kListRows == kTileM && kListColumns == kStageK && kListRowBytes == kStageK * kElementBytes);

// What limits these kernels are the instructions of a producer warp, one after the other. So of narrow tiles each
// quarter of a stage is written by one of two warps, which have the stages in turn. With wide ones there are no
// registers for it.
constexpr int turns_of(int tile_n) { return tile_n <= 64 ? 2 : 1; }
constexpr int kQuarterBytes = kQuarterRows * kListRowBytes;
// Warpgroups that multiply. Where a tile is narrow, one has both halves of its rows, so that the threads of two CTAs
// have enough registers.
constexpr int warpgroups_of(int tile_n) { return tile_n <= 64 ? 1 : 2; }
constexpr int kFullArrivals = kQuarters + 1;  // a warp's rows of A each, and that B is on its way
constexpr int kChunkBytes = kStageK * kChunkColumns * kElementBytes;
// What a warp copies to shared memory at once: a list, or a part of one. So many copies are under way or there.
constexpr int kPartElements = 3 * kChunk, kPartBytes = kPartElements * int(sizeof(uint32_t));
constexpr int slots_of(int tile_n) { return tile_n <= 64 ? 2 : 5; }
constexpr uint32_t kHasBlocks = 0, kIsEnd = 1;  // of what follows a tile's stages in the ring

struct Params {
  CUtensorMap map_b;  // see BoxesOfB
  CUtensorMap map_c;  // (N, M, 1); set if by_tma
  LaunchArgs args;
  RowChunks rows;
  BoxesOfB boxes;
  ListSizes sizes;
  StageLists lists;
  int32_t groups, tiles;  // of 128 rows; of these by all panels
  bool by_tma;            // C is stored by TMA
};

template <int TileN, int Stages>
struct Storage {
  static constexpr int kTurns = turns_of(TileN), kProducerWarps = kTurns * kQuarters, kProducers = 32 * kProducerWarps;
  static constexpr int kWarpgroups = warpgroups_of(TileN), kConsumerWarps = 4 * kWarpgroups, kSlots = slots_of(TileN);
  static constexpr int kTileN = TileN, kStages = Stages, kStageBytesB = TileN / kChunkColumns * kChunkBytes;
  alignas(1024) uint8_t b[Stages][kStageBytesB];
  alignas(1024) uint8_t a[Stages][kStageBytesA];
  alignas(1024) StoreBuffers buffers[kConsumerWarps];
  alignas(16) uint8_t parts[kProducerWarps][kSlots][kPartBytes];
  uint32_t marks[Stages];  // kHasBlocks or kIsEnd
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

// A tile of C. The tiles of a panel of columns follow each other, so that B's part stays in L2.
struct Place {
  int group, panel;
  __device__ Place(const Params& p, int tile) : group(tile % p.groups), panel(tile / p.groups) {}
};

// A part of a list, in a word: its stage, its elements, and whether it is the first or the last one of the list.
struct Part {
  static constexpr uint32_t kNone = 0xffffffffu, kFirst = 1u << 30, kLast = 1u << 31;
  uint32_t word;

  __device__ static Part of(int stage, int elements, bool first, bool last) {
    return {uint32_t(elements) | uint32_t(stage) << 12 | (first ? kFirst : 0) | (last ? kLast : 0)};
  }
  __device__ bool is_none() const { return word == kNone; }
  __device__ bool is_first() const { return (word & kFirst) != 0; }
  __device__ bool is_last() const { return (word & kLast) != 0; }
  __device__ int elements() const { return int(word & 0xfff); }
  __device__ int stage() const { return int(word >> 12 & 0xffff); }
};
static_assert(kPartElements <= 0xfff && kMostStages <= 0x10000);

// The parts of a warp's lists of a tile, one after the other: of all stages, or of every other one. Stages in which no
// quarter has elements are left out; of others an empty list is one empty part.
template <int Turns>
class Parts {
 public:
  // lists: of the row group. is_next: whether the tile's first stage is the warp's.
  __device__ Parts(const Params& p, const StageList* lists, int quarter, int lane, bool is_next)
      : p_(p), lists_(lists), quarter_(quarter), lane_(lane), is_next_(is_next) {}

  // Behind the last part: whether what follows the tile's stages in the ring is the warp's.
  __device__ bool is_next() const { return is_next_; }

  // Begins to copy the next part to `to`.
  __device__ Part copy_next(uint32_t to) {
    bool first = false;
    if (left_ == 0) {
      stage_ = next_stage();
      if (stage_ < 0) return {Part::kNone};
      from_ = __shfl_sync(kWarp, own_.begin, stage_ % 32);
      left_ = __shfl_sync(kWarp, own_.count, stage_ % 32);
      first = true;
    }
    const int elements = min(left_, kPartElements);
    const uint32_t* const from = p_.lists.elements + int64_t(from_) * kChunk + lane_ * kFour;
#pragma unroll
    for (int i = 0; i < kPartElements; i += kChunk) {
      if (i < elements) copy(to + (i + lane_ * kFour) * int(sizeof(uint32_t)), from + i);
    }
    from_ += kPartElements / kChunk;
    left_ -= elements;
    return Part::of(stage_, elements, first, left_ == 0);
  }

 private:
  __device__ static void copy(uint32_t to, const uint32_t* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  }
  // The next one of the warp's.
  __device__ int next_stage() {
    while (true) {
      const int stage = next_with_blocks();
      if (stage < 0) return -1;
      if (Turns == 1) return stage;
      is_next_ = !is_next_;
      if (!is_next_) return stage;
    }
  }
  __device__ int next_with_blocks() {
    while (bits_ == 0) {
      if (window_ >= p_.sizes.stages) return -1;
      const int stage = window_ + lane_;
      bool any = false;
      if (stage < p_.sizes.stages) {
        const auto* const four = reinterpret_cast<const int4*>(lists_ + stage * kQuarters);
        const int4 low = __ldg(four), high = __ldg(four + 1);
        any = (low.y | low.w | high.y | high.w) != 0;
        own_.begin = quarter_ == 0 ? low.x : quarter_ == 1 ? low.z : quarter_ == 2 ? high.x : high.z;
        own_.count = quarter_ == 0 ? low.y : quarter_ == 1 ? low.w : quarter_ == 2 ? high.y : high.w;
      }
      bits_ = __ballot_sync(kWarp, any);
      window_ += 32;
    }
    const int bit = __ffs(int(bits_)) - 1;
    bits_ &= bits_ - 1;
    return window_ - 32 + bit;
  }

  const Params& p_;
  const StageList* lists_;
  int quarter_, lane_;
  bool is_next_;
  StageList own_ = {};  // the warp's list of the lane's stage of the window
  int window_ = 0;      // the stage behind the window of 32
  uint32_t bits_ = 0;   // its stages that are left
  int stage_ = 0, from_ = 0, left_ = 0;
};

// Writes the elements of a part, which lies at `from`, to a quarter.
__device__ inline void write_part(uint32_t quarter, uint32_t from, int elements, int lane) {
  const auto put = [&](uint32_t element) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(quarter + (element & kPlaceBits)), "h"(uint16_t(element >> 16))
                 : "memory");
  };
#pragma unroll
  for (int i = 0; i < kPartElements; i += kChunk) {
    if (i >= elements) break;
    uint4 four;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
                 : "r"(from + (i + lane * kFour) * int(sizeof(uint32_t)))
                 : "memory");
    put(four.x);
    if (i + 32 < elements) put(four.y);
    if (i + 64 < elements) put(four.z);
    if (i + 96 < elements) put(four.w);
  }
}

__device__ inline void clear_quarter(uint32_t quarter, int lane) {
#pragma unroll
  for (int i = 0; i < kQuarterBytes; i += 512) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(quarter + i + lane * 16), "r"(0) : "memory");
  }
}

// By all producer warps: fills the stages of the CTA's tiles, and one more behind each tile that says so.
template <class Storage>
__device__ void produce(const Params& p, Storage& shared) {
  constexpr int kStages = Storage::kStages, kSlots = Storage::kSlots;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quarter = warp % kQuarters;
  const int boxes_of_tile = Storage::kTileN / kChunkColumns / p.boxes.chunks;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_a = shared_address(shared.a) + quarter * kQuarterBytes, first_b = shared_address(shared.b);
  const uint32_t first_part = shared_address(shared.parts[warp]);
  constexpr auto kOften = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
  RingState<kStages> state;
  bool is_next = warp < kQuarters;  // whether the ring's next stage is the warp's
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    if (!is_next) ++state;
    const Place place(p, tile);
    const int64_t chunks = (p.args.n - int64_t(place.panel) * Storage::kTileN + kChunkColumns - 1) / kChunkColumns;
    const int boxes = min(boxes_of_tile, int((chunks + p.boxes.chunks - 1) / p.boxes.chunks));
    Parts<Storage::kTurns> parts(p, p.lists.lists + place.group * p.sizes.stages * kQuarters, quarter, lane, is_next);
    Part ahead[kSlots];
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      ahead[i] = parts.copy_next(first_part + i * kPartBytes);
      asm volatile("cp.async.commit_group;" ::: "memory");
    }
    int slot = 0;
#pragma unroll 1
    while (!ahead[0].is_none()) {
      const Part part = ahead[0];
      const uint32_t full = first_full + state.stage * kBarrierBytes, to = first_a + state.stage * kStageBytesA;
      if (part.is_first()) {
        wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
        if (quarter == 0) {
          if (lane == 0) {
            shared.marks[state.stage] = kHasBlocks;
            arrive_and_expect(full, boxes * p.boxes.chunks * p.sizes.columns * kChunkColumns * kElementBytes);
          }
          __syncwarp();
          if (lane < boxes) {
            const int chunk = lane * p.boxes.chunks;
            load_box(p.map_b, full, kOften, first_b + state.stage * Storage::kStageBytesB + chunk * kChunkBytes,
                     p.boxes.origin(place.panel * (Storage::kTileN / kChunkColumns) + chunk,
                                    part.stage() * p.sizes.columns));
          }
        }
        clear_quarter(to, lane);
      }
      asm volatile("cp.async.wait_group %0;" ::"n"(kSlots - 1) : "memory");
      __syncwarp();
      write_part(to, first_part + slot * kPartBytes, part.elements(), lane);
      __syncwarp();
      if (part.is_last()) {
        if (lane == 0) arrive_in_cluster<1>(full);
#pragma unroll
        for (int turn = 0; turn < Storage::kTurns; ++turn) ++state;
      }
#pragma unroll
      for (int i = 0; i + 1 < kSlots; ++i) ahead[i] = ahead[i + 1];
      ahead[kSlots - 1] = parts.copy_next(first_part + slot * kPartBytes);
      asm volatile("cp.async.commit_group;" ::: "memory");
      if (++slot == kSlots) slot = 0;
    }
    if (!parts.is_next()) {  // the end is the other warp's, and what follows it this one's
      is_next = true;
      continue;
    }
    is_next = Storage::kTurns == 1;
    const uint32_t full = first_full + state.stage * kBarrierBytes;
    wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
    if (lane == 0) {
      if (quarter == 0) {
        shared.marks[state.stage] = kIsEnd;
        arrive_in_cluster<1>(full);
      }
      arrive_in_cluster<1>(full);
    }
    ++state;
  }
}

// Rows of B that no box brings.
template <class Storage>
__device__ void clear_rest(const Params& p, Storage& shared) {
  const int first = p.sizes.columns * kChunkColumns * kElementBytes;
  for (int i = first + threadIdx.x * 16; i < kChunkBytes; i += Storage::kProducers * 16) {
    for (int chunk = 0; chunk < Storage::kStages * Storage::kTileN / kChunkColumns; ++chunk) {
      *reinterpret_cast<uint4*>(shared.b[0] + chunk * kChunkBytes + i) = uint4{};
    }
  }
  cutlass::arch::fence_view_async_shared();
  cutlass::arch::NamedBarrier::sync(Storage::kProducers, 0);
}

// A warp's 16 rows of a tile of C, in one half of it.
struct OwnRows {
  uint32_t first_row, first_col;
  int lane;
  template <class Storage>
  __device__ OwnRows(const Params& p, const Storage&, int tile, int half) : lane(threadIdx.x % 32) {
    const Place place(p, tile);
    const int warp = int(threadIdx.x - Storage::kProducers) / 32 % 4;
    first_row = place.group * kTileM + half * (kTileM / 2) + warp * kStoreRows;
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
    auto& buffers =
        reinterpret_cast<StoreBuffers&>(shared.buffers[(threadIdx.x - Storage::kProducers) / 32][first_buffer]);
    store_rows_by_tma<Element>(p.map_c, alpha_of(args.epilogue), acc, buffers, own.first_row, own.first_col, own.lane);
  } else {
    // The next store of 64 columns by TMA waits but for the one before the last, which must not be of its buffer.
    if (p.by_tma && Groups * 8 == kStoreColumns) wait_for_stores();
    store_rows<Element, true>(args, acc, row, own.first_col, own.lane, with_nan);
  }
  return with_nan;
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
  RingState<kStages> state;
  const auto release = [&](int stage) {
    __syncwarp();
    if (lane == 0) arrive_in_cluster<1>(first_empty + stage * kBarrierBytes);
  };
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    float acc[kHalves][kGroups][4] = {};
    bool pending = false;  // wgmma may still read the previous stage
#pragma unroll 1
    while (true) {
      wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
      if (read_by_one(&shared.marks[state.stage], lane) == kIsEnd) break;
      // A was written by threads, and is read by tensor cores. The producers would wait here for the copies ahead.
      cutlass::arch::fence_view_async_shared();
      const uint64_t a = advanced(first_a, state.stage * kStageBytesA);
      const uint64_t b = advanced(first_b, state.stage * Storage::kStageBytesB);
      cute::warpgroup_arrive();
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
#pragma unroll
        for (int half = 0; half < kHalves; ++half) {
          wgmma_ss<Element>(acc[half], advanced(a, half * kHalfBytes + u * kUnitK * kElementBytes),
                            advanced(b, u * kUnitK * kChunkColumns * kElementBytes));
        }
      }
      cute::warpgroup_commit_batch();
      cute::warpgroup_wait<1>();
      if (pending) release(state.previous());
      pending = true;
      ++state;
    }
    cute::warpgroup_wait<0>();
#pragma unroll
    for (int half = 0; half < kHalves; ++half) wgmma_fence(acc[half]);
    if (pending) release(state.previous());
    release(state.stage);
    ++state;
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

// Registers of a thread. A CTA has no more of them than at its launch: 384 times 80, or 168 where an SM has one.
constexpr int producer_registers(int tile_n) { return tile_n <= 64 ? 56 : 72; }
constexpr int consumer_registers(int tile_n) { return tile_n <= 64 ? 128 : 216; }

static_assert(2 * producer_registers(64) + consumer_registers(64) <= 3 * 80 &&
              producer_registers(256) + 2 * consumer_registers(256) <= 3 * 168);

constexpr int threads_of(int tile_n) { return 128 * (turns_of(tile_n) + warpgroups_of(tile_n)); }

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
    cutlass::arch::fence_barrier_init();
  }
  wait_for_previous_launch();
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
    const cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    return error == cudaSuccess ? prepare_stage_lists() : error;
  }

  static size_t workspace_bytes(const LaunchArgs& args) {
    return static_cast<size_t>(list_sizes(args.rows, args.cols, args.nnzb, args.block_m, args.block_k).bytes());
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = wgmma_scatter_kernel;
    const ListSizes sizes = list_sizes(args.rows, args.cols, args.nnzb, args.block_m, args.block_k);
    k::Params p = {{}, {}, args, *args.rows_in_chunks, k::BoxesOfB::of(args), sizes, {sizes, args.workspace},
                   0,  0,  false};
    // Chunks of fewer than 64 rows have gaps between them in shared memory.
    p.boxes.chunks = sizes.columns == k::kStageK ? std::min(p.boxes.chunks, kTileN / k::kChunkColumns) : 1;
    p.groups = static_cast<int32_t>(sizes.groups);
    p.tiles = static_cast<int32_t>(p.groups * ((args.n + kTileN - 1) / kTileN));
    p.by_tma = can_store_by_tma<Element>(args);
    cudaError_t error = p.boxes.make_map(&p.map_b, args, sizes.columns, p.boxes.chunks);
    if (error == cudaSuccess && p.by_tma) error = make_store_map(&p.map_c, args);
    if (error == cudaSuccess) error = list_stages(args, sizes, p.lists);
    if (error != cudaSuccess) return error;
    return launch_kernel(kKernel, std::min(args.workers, p.tiles), kThreads, kSharedBytes, args.stream,
                         {/*overlap=*/true}, p);
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
