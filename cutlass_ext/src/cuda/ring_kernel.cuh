// SPDX-License-Identifier: Apache-2.0
// The shell of the kernel families "wgmma_blocks", "wgmma_gather" and "wgmma_packed": the roles of a CTA, the ring of
// stages between them, and what becomes of a tile's sums. A Mainloop fills the stages and multiplies them:
//
//   kSlots, kStages, kCtas         of a row group, or kAnySlots; of the ring; of a cluster, which computes neighbouring
//                                  columns
//   kMajorB, kAnyMajorC            of stages of B; whether C may be M-major, as LaunchArgs say
//   kMaySplit                      tiles may be parts
//   kNan                           what becomes of sums that may have NaN from absent blocks, see NanRule
//   kTileReaders, kFullArrivals    producer warps that read tiles; arrivals at the barrier of a full stage
//   kChunkBytes                    from 64 columns of a stage of B to the next 64
//   kProducerRegisters, kConsumerRegisters
//   Params                         derived from Product
//   Own                            what it has in shared memory besides the ring; init(thread) is for all threads
//   stages_of(p, entries)          how many stages a tile has
//   produce(p, shared, rank)       by the first warpgroup: fills the stages of the CTA's tiles
//   add_stages(ring, warpgroup, stages, acc)       by each of the others: adds a tile's stages to its sums
//   second_walk(p, shared, state, tile)            by both, after each kRoundTiles tiles, and the last: NanRule::kWalk
//   compute_again(p, shared)                       by a warp with NaN: computes and stores Own::again[warp]:
//   NanRule::kWarp
#pragma once

#include "cuda/column_store.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/nan_sums.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/ring.cuh"
#include "cuda/ring_tile.cuh"
#include "cuda/row_store.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/tma_store.cuh"
#include "cuda/wgmma.cuh"
#include "cute/arch/cluster_sm90.hpp"
#include "cutlass/arch/barrier.h"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace ring_kernel {

// What every product has. Each kernel's parameters are derived from it.
struct Product {
  CUtensorMap map_b;  // see BoxesOfB
  CUtensorMap map_c;  // (N, M, 1), or (M, N, 1) where C is M-major; set if by_tma
  LaunchArgs args;
  BoxesOfB boxes;
  bool by_tma;  // C is stored by TMA
};

// box_rows: of B. whole_rows: the 16 rows of each warp are consecutive rows of C. most_chunks: in a box of B.
template <class Element>
cudaError_t describe(Product* p, const LaunchArgs& args, int box_rows, bool whole_rows, int most_chunks = kChunks) {
  p->args = args;
  p->boxes = BoxesOfB::of(args);
  if (p->boxes.chunks > most_chunks) p->boxes.chunks = most_chunks;
  p->by_tma =
      whole_rows && (args.c_m_major ? can_store_columns_by_tma<Element>(args) : can_store_by_tma<Element>(args));
  const cudaError_t error = p->boxes.make_map(&p->map_b, args, box_rows, p->boxes.chunks);
  if (error != cudaSuccess || !p->by_tma) return error;
  return args.c_m_major ? make_column_store_map(&p->map_c, args) : make_store_map(&p->map_c, args);
}

// The boxes of C are of 16-bit elements.
template <class Element>
constexpr bool kStoredByTma = sizeof(Element) == kElementBytes;

template <class Mainloop>
struct SharedStorage {
  static constexpr int kStages = Mainloop::kStages;
  alignas(1024) uint8_t b[kStages][kStageBytesB];  // the main loop's layout
  alignas(1024) uint8_t a[kStages][kStageBytesA];  // (stage, 128, 64)
  alignas(1024) StoreBuffers buffers[kConsumerWarps];
  TileQueue<kTileDepth, Mainloop::kCtas> tiles;
  typename Mainloop::Own own;
  uint32_t present[kStages];  // which rows have a block: the main loop's bits
  cutlass::arch::ClusterTransactionBarrier full[kStages];
  cutlass::arch::ClusterBarrier empty[kStages];
};

// Zeros of absent blocks times Inf or NaN are NaN.
enum class NanRule {
  kNone,  // absent blocks are not multiplied
  kWalk,  // chunks of 64 columns with NaN are not stored, and walked again by the whole CTA
  kWarp,  // groups of 8 columns with NaN are computed again by the slab's warp at once
};

// What a warp computes again; there are no registers for it while C is stored.
struct Again {
  WorkTile tile;
  uint32_t groups;  // of 8 columns
};

// How many tiles a warp has had, which gives the place in the queue of the next one.
struct TileCount {
  int index = 0;
  uint32_t turns = 0;  // of the queue's ring
  __device__ TilePlace<kTileDepth> place() const { return {index, turns & 1}; }
  __device__ uint32_t in_round() const { return (turns * kTileDepth + index) % kRoundTiles; }
  __device__ bool begins_round() const { return index == 0 && turns % (kRoundTiles / kTileDepth) == 0; }
  __device__ void operator++() {
    if (++index == kTileDepth) {
      index = 0;
      ++turns;
    }
  }
};

constexpr int kAnySlots = 0;  // LaunchArgs::slots, a multiple of 2 up to 32

// What a consumer warp knows of itself.
template <int Slots>
struct Slab {
  static constexpr int kSlotRows = kTileM / Slots;
  int warp, lane;
  __device__ uint32_t slot(int half) const { return uint32_t(warp * 16 + half * 8) / kSlotRows; }
  // The lane's row of C in a half of the slab.
  __device__ uint32_t row(const LaunchArgs& args, const WorkTile& tile, int half) const {
    return uint32_t(__ldg(args.slot_row + int64_t(tile.m_tile) * Slots + slot(half))) +
           uint32_t(warp * 16 + half * 8) % kSlotRows + lane / 4;
  }
};

template <>
struct Slab<kAnySlots> {
  int warp, lane;
  __device__ uint32_t row(const LaunchArgs& args, const WorkTile& tile, int half) const {
    const uint32_t slot_rows = uint32_t(kTileM) / uint32_t(args.slots), row = warp * 16 + half * 8 + lane / 4;
    return uint32_t(__ldg(args.slot_row + int64_t(tile.m_tile) * args.slots + row / slot_rows)) + row % slot_rows;
  }
};

// That of the calling thread. What depends on it is computed behind each call, and not once for all calls, so that it
// does not occupy registers meanwhile.
template <int Slots>
__device__ Slab<Slots> own_slab() {
  const int thread = read_thread() - kProducers;
  __builtin_assume(thread >= 0 && thread < kConsumerWarps * 32);
  return {thread / 32, thread % 32};
}

// A word that the compiler keeps in a register, instead of computing it again in a loop.
__device__ inline uint32_t kept(uint32_t word) {
  asm volatile("" : "+r"(word));
  return word;
}

// The ring as a consumer warp sees it while it computes a tile. Made anew for each, so that its registers are free
// while C is stored.
template <class Mainloop>
struct FullStages {
  static constexpr int kStages = Mainloop::kStages;
  RingState<kStages>& state;
  int lane, rank;
  uint32_t first_full, first_present, first_empty;
  uint32_t first_a, first_b;  // descriptors, their lower halves; of the warpgroup's rows of A
  bool pending = false;       // wgmma may still read the previous stage

  __device__ FullStages(SharedStorage<Mainloop>& shared, RingState<kStages>& next, int warp, int of_lane, int of_cta)
      : state(next), lane(of_lane), rank(of_cta) {
    const uint32_t of_warpgroup = warp / 4 * (kStageBytesA / kWarpgroups);
    first_a = kept(uint32_t(wgmma_descriptor_a(cute::cast_smem_ptr_to_uint(shared.a) + of_warpgroup)));
    const uint32_t stages_b = cute::cast_smem_ptr_to_uint(shared.b);
    first_b = kept(uint32_t(Mainloop::kMajorB == Major::K ? wgmma_descriptor_a(stages_b)
                                                          : wgmma_descriptor_b(stages_b, Mainloop::kChunkBytes)));
    first_full = shared_address(shared.full);
    // By way of the one address that the compiler keeps.
    const auto at = [&](const void* of) {
      return first_full + (cute::cast_smem_ptr_to_uint(of) - cute::cast_smem_ptr_to_uint(shared.full));
    };
    first_present = at(shared.present);
    first_empty = at(shared.empty);
    if constexpr (Mainloop::kCtas > 1) first_empty = kept(cute::set_block_rank(first_empty, lane % Mainloop::kCtas));
  }
  __device__ void wait() const { wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase); }
  __device__ uint32_t present() const { return read_by_one(first_present + state.stage * 4, lane, rank); }
  // Descriptors of the stage.
  __device__ uint64_t a() const {
    return wgmma_descriptor_a(0) >> 32 << 32 | (first_a + state.stage * (kStageBytesA / 16));
  }
  __device__ uint64_t b() const {
    return wgmma_descriptor_b(0, 0) >> 32 << 32 | (first_b + state.stage * (kStageBytesB / 16));
  }
  // Gives a stage back, after every lane has read it; to all CTAs that write into it.
  __device__ void release(int stage) const {
    __syncwarp();
    if (lane < Mainloop::kCtas) arrive_in_cluster<Mainloop::kCtas>(first_empty + stage * kBarrierBytes);
  }
  // After wgmma has read all of the previous stage.
  __device__ void release_previous() const {
    if (pending) release(state.previous());
  }
};

// Computes and stores a CTA's tiles of a round, from `tile` on, which is then the first of the next one. state: the
// next stage of the ring.
template <class Element, class Mainloop>
__device__ void consume_round(const typename Mainloop::Params& p, SharedStorage<Mainloop>& shared, int rank,
                              RingState<Mainloop::kStages>& state, TileCount& count, WorkTile& tile) {
  constexpr int kSlots = Mainloop::kSlots, kCtas = Mainloop::kCtas;
  const LaunchArgs& args = p.args;
  const Slab<kSlots> slab = own_slab<kSlots>();
  const int warp = slab.warp, lane = slab.lane;
  do {
    if constexpr (kSlots != kAnySlots) {
      prefetch_to_l1(args.slot_row + int64_t(tile.m_tile) * kSlots + slab.slot(0));
    }
    float acc[kGroups][4] = {};
    FullStages<Mainloop> ring(shared, state, warp, lane, rank);
    Mainloop::template add_stages<Element>(ring, warp / 4, Mainloop::stages_of(p, tile.entry_count), acc);
    cute::warpgroup_wait<0>();
    wgmma_fence(acc);
    ring.release_previous();

    const uint32_t row[2] = {slab.row(args, tile, 0), slab.row(args, tile, 1)};  // of C
    const uint32_t first_col = (panel_or_part<Mainloop::kMaySplit>(tile) * kCtas + rank) * kTileN;
    uint32_t with_nan = 0;  // chunks, or of kWarp groups, which are not stored yet
    if constexpr (Mainloop::kNan != NanRule::kNone) {
      if (any_nan(args, acc, row, first_col, lane) && p.multiplies_zeros) {
        if constexpr (Mainloop::kNan == NanRule::kWarp) {
          with_nan = groups_with_nan(args, acc, row, first_col);
          if (lane == 0) shared.own.again[warp] = {tile, with_nan};
        } else {
          with_nan = chunks_with_nan(args, acc, row, first_col, lane);
        }
        if (lane == 0) {
          if constexpr (Mainloop::kNan == NanRule::kWalk) {
            shared.own.round.mark(count.in_round(), tile, warp, with_nan);
          }
          atomicAdd(args.recomputed, 1ull);
        }
      }
    }
    if constexpr (Mainloop::kAnyMajorC) {
      auto& buffers = reinterpret_cast<WarpgroupBuffers&>(shared.buffers[warp / kColumnStoreWarps * kColumnStoreWarps]);
      store_either_major<Element>(p.map_c, p.by_tma, args, acc, buffers, row, first_col, warp, lane);
    } else if (const int place = part_of(tile); Mainloop::kMaySplit && place >= 0) {
      leave_part(args, acc, place, first_col, kProducers, with_nan);
    } else if (kStoredByTma<Element> && p.by_tma && with_nan == 0) {
      if constexpr (kStoredByTma<Element>) {
        store_rows_by_tma<Element>(p.map_c, alpha_of(args.epilogue), acc, shared.buffers[warp], row[0] - lane / 4,
                                   first_col, lane);
      }
    } else {
      store_rows<Element, Mainloop::kNan == NanRule::kWarp>(args, acc, row, first_col, lane, with_nan);
    }
    if constexpr (Mainloop::kNan == NanRule::kWarp) {
      if (with_nan != 0) Mainloop::template compute_again<Element>(p, shared);
    }
    tile = within<kCtas, Mainloop::kMaySplit>(args, shared.tiles.next(count.place(), lane));
    ++count;
  } while (tile.m_tile != kNoTile && !(Mainloop::kNan == NanRule::kWalk && count.begins_round()));
}

template <class Element, class Mainloop>
__device__ void consume(const typename Mainloop::Params& p, SharedStorage<Mainloop>& shared, int rank) {
  RingState<Mainloop::kStages> state;
  TileCount count;
  WorkTile tile = first_tile<Mainloop::kCtas, Mainloop::kMaySplit>(p.args);
  while (true) {
    consume_round<Element>(p, shared, rank, state, count, tile);
    if constexpr (Mainloop::kNan == NanRule::kWalk) {
      if (p.multiplies_zeros) Mainloop::template second_walk<Element>(p, shared, state, tile);
    }
    if (tile.m_tile == kNoTile) break;
  }
  wait_for_stores();
}

// The kernel, of kThreads threads and sizeof(SharedStorage<Mainloop>) bytes of shared memory.
template <class Element, class Mainloop>
__device__ void run(const typename Mainloop::Params& p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<SharedStorage<Mainloop>*>(memory);
  const int rank = Mainloop::kCtas == 1 ? 0 : int(cute::block_rank_in_cluster());
  shared.own.init(threadIdx.x);
  if (threadIdx.x == 0) {
    for (int s = 0; s < Mainloop::kStages; ++s) {
      shared.full[s].init(Mainloop::kFullArrivals);
      shared.empty[s].init(kConsumerWarps * Mainloop::kCtas);
    }
    shared.tiles.init(Mainloop::kTileReaders + kConsumerWarps);
    cutlass::arch::fence_barrier_init();
  }
  // Nothing before this touches memory of other kernels.
  wait_for_previous_launch();
  if (Mainloop::kMaySplit && p.args.parts.sums != nullptr) {
    allow_dependent_launch();  // lets add_parts.cu begin on SMs that become free
  }
  if constexpr (Mainloop::kCtas == 1) {
    __syncthreads();
  } else {
    cute::cluster_sync();
  }
  static_assert(Mainloop::kProducerRegisters + kWarpgroups * Mainloop::kConsumerRegisters <=
                    (1 + kWarpgroups) * (65536 / kThreads / 8 * 8),
                "a CTA has no more registers than at its launch");
  if (threadIdx.x < kProducers) {
    cutlass::arch::warpgroup_reg_dealloc<Mainloop::kProducerRegisters>();
    Mainloop::produce(p, shared, rank);
  } else {
    cutlass::arch::warpgroup_reg_alloc<Mainloop::kConsumerRegisters>();
    consume<Element>(p, shared, rank);
  }
  // The shared memory of a CTA outlives the copies and arrivals of the others.
  if constexpr (Mainloop::kCtas > 1) {
    cute::cluster_arrive();
    cute::cluster_wait();
  }
}

}  // namespace ring_kernel
}  // namespace sparsek::cuda
