// SPDX-License-Identifier: Apache-2.0
// What the roles of a CTA of the kernel family "wgmma_gather" share: sizes, arguments and shared memory. See
// wgmma_gather.cuh.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "collective/tile_queue.hpp"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"
#include "cuda/ring_kernel.cuh"
#include "cuda/ring_tile.cuh"
#include "cute/arch/util.hpp"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace wgmma_gather_kernel {

using namespace ring_kernel;

constexpr bool kMaySplit = true;
constexpr int kChunkBytes = kUnitK * kChunkColumns * kElementBytes;
constexpr int kUnitBytesB = kChunks * kChunkBytes;
constexpr int kChunkGroups = kChunkColumns / 8;
constexpr int kWalkChunks = 2;  // the most chunks of a second walk
// A producer warp is at most kStages tiles ahead of the consumers, where each tile has one stage: so kTileDepth is as
// much.
constexpr int kProducerWarps = kProducers / 32;

// A producer thread copies a vector of 16 bytes of every kRowStep-th row. The swizzle repeats after kSwizzleRows rows.
constexpr int kVectors = kRowBytesA / 16;
constexpr int kUnitVectors = kVectors / kUnits;
constexpr int kRowStep = 32 / kVectors;
constexpr int kCopies = kTileM / kRowStep;
constexpr int kSwizzleRows = 8;

// The presence of slots in a unit, for a warpgroup: one bit for each slot of its 64 rows.
template <int Slots>
constexpr int kGroupSlots = Slots / kWarpgroups > 1 ? Slots / kWarpgroups : 1;

struct Params : Product {
  CUtensorMap map_half;                  // as map_b, with boxes of half a unit and one chunk; set if multiplies_zeros
  uint32_t block_bytes, row_step_bytes;  // bytes of a block of A; from a producer's row of it to the next
  int units_per_entry;
  int entry_step, part_step;  // from a unit of a stage to that of the warp's next stage: entries, and units of an entry
  bool multiplies_zeros;      // for rows that have no block, or columns beyond it: finds NaN that is theirs
};

// The chunks of columns of a tile that one second walk computes: two at most, of those that are left.
struct WalkedChunks {
  uint32_t left;  // bits
  __device__ int first() const { return __ffs(left) - 1; }
  __device__ uint32_t behind_first() const { return left & (left - 1); }
  __device__ int count() const { return behind_first() == 0 ? 1 : 2; }
  __device__ int second() const { return __ffs(behind_first()) - 1; }
  __device__ WalkedChunks next() const { return {behind_first() & (behind_first() - 1)}; }
};

// Where all warps of a CTA meet, each role in its own code.
struct Meeting {
  cutlass::arch::ClusterBarrier barrier;
  uint8_t parity[kProducerWarps + kConsumerWarps];  // of each warp's next meeting
  uint32_t objects, objected;                       // whether a warp objects, and whether one did

  // By one thread, before all threads synchronise.
  __device__ void init() {
    barrier.init(kThreads);
    for (uint8_t& of_warp : parity) of_warp = 0;
    objects = 0;
  }
  // By all lanes of each warp of the CTA. What each of them has read before may be written after it.
  __device__ void meet(int warp_of_cta, int lane) { meet<true>(warp_of_cta, lane); }
  // Like meet, in less time: enough for what the first lane of each warp has written before.
  __device__ void meet_by_one(int warp_of_cta, int lane) { meet<false>(warp_of_cta, lane); }
  // Meets, and returns whether `agrees` was true for all.
  __device__ bool agree(int warp_of_cta, int lane, bool agrees) {
    if (!agrees && lane == 0) atomicOr(&objects, 1u);
    meet(warp_of_cta, lane);
    if (warp_of_cta == 0 && lane == 0) {
      objected = objects;
      objects = 0;
    }
    meet(warp_of_cta, lane);
    return objected == 0;
  }

 private:
  template <bool EachArrives>
  __device__ void meet(int warp_of_cta, int lane) {
    const uint32_t own = parity[warp_of_cta];
    __syncwarp();
    if (lane == 0) parity[warp_of_cta] = uint8_t(own ^ 1);
    if (EachArrives || lane == 0) {
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(cute::cast_smem_ptr_to_uint(&barrier)),
                   "r"(EachArrives ? 1 : 32)
                   : "memory");
    }
    barrier.wait(own);
  }
};

// The tiles of a round that have NaN in their sums. Others leave no trace.
struct Round {
  WorkTile tile[kRoundTiles];
  // Bit 4 s + c: slab s has NaN in chunk c of its columns. Such chunks are not stored yet.
  uint32_t marks[kRoundTiles];
  uint32_t marked_tiles[kRoundTiles / 32];  // one bit for each tile with marks
  WorkTile next;                            // of the next round, kept here during a second walk

  // By a thread of each slab with NaN. at: the tile's place in the round. chunks: one bit for each chunk with NaN.
  __device__ void mark(uint32_t at, const WorkTile& of, int slab, uint32_t chunks) {
    tile[at] = of;
    atomicOr(&marks[at], chunks << slab * kChunks);
    atomicOr(&marked_tiles[at / 32], 1u << at % 32);
  }
  __device__ bool any() const { return (marked_tiles[0] | marked_tiles[1] | marked_tiles[2] | marked_tiles[3]) != 0; }
  // The first tile with marks from `at` on, or kRoundTiles.
  __device__ uint32_t next_marked(uint32_t at) const {
    while (at < kRoundTiles) {
      const uint32_t bits = marked_tiles[at / 32] >> at % 32;
      if (bits != 0) return at + __ffs(bits) - 1;
      at = (at / 32 + 1) * 32;
    }
    return kRoundTiles;
  }
  __device__ bool marked(uint32_t at, int slab, int chunk) const { return marks[at] >> (slab * kChunks + chunk) & 1; }
  // The chunks in which any slab has NaN.
  __device__ uint32_t marked_chunks(uint32_t at) const {
    uint32_t chunks = marks[at];
#pragma unroll
    for (int shift = 16; shift >= kChunks; shift /= 2) chunks |= chunks >> shift;
    return chunks & ((1u << kChunks) - 1);
  }
  // By all threads of a CTA that begins, or by those of one warp.
  __device__ void clear(int thread, int threads) {
    for (uint32_t i = thread; i < kRoundTiles; i += threads) marks[i] = 0;
    for (uint32_t i = thread; i < kRoundTiles / 32; i += threads) marked_tiles[i] = 0;
  }
};
static_assert(kRoundTiles == 4 * 32, "any() reads four words");

// Besides the ring. `present` of the ring: bit 8 g + 2 u: one of the rows of warpgroup g has a block in unit u.
template <int Stages>
struct Own {
  alignas(4) uint8_t slots_present[Stages][kWarpgroups][kUnits];  // in the second walk: see kGroupSlots
  Round round;
  Meeting meeting;

  __device__ void init(int thread) {
    round.clear(thread, kThreads);
    if (thread == 0) meeting.init();
  }
};

template <int Slots, int Stages>
struct Mainloop;

template <int Slots, int Stages>
using Storage = SharedStorage<Mainloop<Slots, Stages>>;

__device__ inline int stages_of(const Params& p, int entries) {
  return (entries * p.units_per_entry + kUnits - 1) / kUnits;
}

// The entries of a tile after which its second walk ends if all sums are NaN by then: more of them change nothing. All
// of them where the tile is too short for that, or has too few to take a share of them.
__device__ inline int entries_before_look(const Params& p, int entries) {
  constexpr int kFewStages = 8, kShare = 4;
  return stages_of(p, entries) < kFewStages || entries < kShare ? entries : entries / kShare;
}

}  // namespace wgmma_gather_kernel
}  // namespace sparsek::cuda
