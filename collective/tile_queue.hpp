// SPDX-License-Identifier: Apache-2.0
// The tiles of a plan, taken by the CTAs of a persistent grid, each the next one when it needs one: so a CTA that
// starts late, since something else holds its SM, delays nobody.
//
// CTA i begins with tile i; where a CTA has two workers, the second one begins with tile gridDim.x + i. All further
// tiles are taken from a counter in global memory, by one thread of each worker. It passes them on to the worker's
// warps, the readers, through a ring in shared memory (TileQueue). In long lists, the last CTAs have no tile of their
// own: CTAs begin in the order of their numbers, so where SMs are held, these are the ones that begin late, maybe when
// all others have ended. They begin with a tile that has no columns in C.
//
//   claim      adds one to the counter. The result is needed by `publish` only, so that the caller can do other work
//              while the atomic is under way.
//   publish    waits until every reader has read what was in the next place of the ring, and has the tile copied there
//              by the copy engine, whose arrival completes the place's `full` barrier. After the last tile it writes
//              kNoTile.
//   next       of a reader: waits for the tile and reads it. All readers see the same tiles in the same order.
//
// Which CTA computes a tile changes nothing of its sums.
#pragma once

#include <cstdint>

#include "cute/arch/cluster_sm90.hpp"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"
#include "plan/work_tile.h"

namespace sparsek {

constexpr int32_t kNoTile = -1;  // as a row group: there are no more tiles

struct TileList {
  WorkTile const* tiles = nullptr;  // (count)
  int32_t count = 0;                // at least gridDim.x
  // (1): tiles taken beyond the first of each CTA; 0 before and after the kernel. May be null where count = gridDim.x.
  uint32_t* taken = nullptr;
  uint32_t late = 0;  // of the last CTAs (or clusters): those without a tile of their own (cuda/worker_count.h)
};

// The index of a tile that one of `workers` is to compute after its first; at least list.count where there is none.
__device__ inline uint32_t claim_tile_of(TileList const& list, uint32_t workers) {
  if (uint32_t(list.count) <= workers) return list.count;
  uint32_t const ticket = atomicAdd(list.taken, 1u);
  // Each worker draws one ticket for which there is no tile, and then none, so this is the last of all: it leaves the
  // counter as it was found.
  if (ticket == uint32_t(list.count) + list.late - 1) *list.taken = 0;
  return workers - list.late + ticket;
}

// The same where each CTA, or each cluster, is a worker.
template <int Ctas = 1>
__device__ uint32_t claim_tile(TileList const& list) {
  return claim_tile_of(list, gridDim.x / Ctas);
}

// A place of the ring and the parity of its use.
template <int Depth>
struct TilePlace {
  int index = 0;
  uint32_t phase = 0;
  __device__ void operator++() {
    if (++index == Depth) {
      index = 0;
      phase ^= 1;
    }
  }
};

template <int Depth, int Ctas = 1>
struct TileQueue {
  alignas(16) WorkTile tile[Depth];
  cutlass::arch::ClusterTransactionBarrier full[Depth];
  cutlass::arch::ClusterBarrier empty[Depth];

  // By one thread, before all threads synchronise. readers: warps that call next().
  __device__ void init(int readers) {
    for (int i = 0; i < Depth; ++i) {
      full[i].init(1);
      empty[i].init(readers * Ctas);
    }
  }

  // By the claiming thread. index: of claim_tile.
  __device__ void publish(TileList const& list, uint32_t index, TilePlace<Depth> const& place) {
    empty[place.index].wait(place.phase ^ 1);
    if constexpr (Ctas > 1) return publish_to_all(list, index, place.index);
    if (index < uint32_t(list.count)) {
      full[place.index].arrive_and_expect_tx(sizeof(WorkTile));
      cute::SM90_BULK_COPY_G2S::copy(list.tiles + index, reinterpret_cast<uint64_t*>(&full[place.index]),
                                     &tile[place.index], sizeof(WorkTile));
    } else {
      tile[place.index] = {kNoTile, 0, 0, 0};
      full[place.index].arrive();
    }
  }

  // By a whole warp. The caller then goes on to the next place.
  __device__ WorkTile next(TilePlace<Depth> const& place, int lane) {
    full[place.index].wait(place.phase);
    // Read by the lane that gives the place back, so that it does so after the read.
    int4 words = {};
    if (lane == 0) words = *reinterpret_cast<int4 const*>(&tile[place.index]);
    words = {__shfl_sync(0xffffffffu, words.x, 0), __shfl_sync(0xffffffffu, words.y, 0),
             __shfl_sync(0xffffffffu, words.z, 0), __shfl_sync(0xffffffffu, words.w, 0)};
    // The comparison is always true, and makes the arrival depend on what was read. Else it may overtake the read,
    // which waits behind the warp's stores to global memory: then the copy of a later tile is what is read.
    if (lane == 0 && words.x >= kNoTile) {
      if constexpr (Ctas == 1) {
        empty[place.index].arrive();
      } else {
        empty[place.index].arrive(0u);
      }
    }
    return {words.x, words.y, words.z, words.w};
  }

 private:
  __device__ void publish_to_all(TileList const& list, uint32_t index, int at) {
    for (int rank = 0; rank < Ctas; ++rank) full[at].arrive_and_expect_tx(sizeof(WorkTile), rank);
    uint32_t const to = cute::cast_smem_ptr_to_uint(&tile[at]), barrier = cute::cast_smem_ptr_to_uint(&full[at]);
    if (index < uint32_t(list.count)) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], "
          "%4;" ::"r"(to),
          "l"(list.tiles + index), "r"(uint32_t(sizeof(WorkTile))), "r"(barrier), "h"(uint16_t((1 << Ctas) - 1))
          : "memory");
    } else {
      for (int rank = 0; rank < Ctas; ++rank) {
        asm volatile(
            "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %2, %2}, [%3];" ::"r"(
                cute::set_block_rank(to, rank)),
            "r"(kNoTile), "r"(0), "r"(cute::set_block_rank(barrier, rank))
            : "memory");
      }
    }
  }
};

// Tells the warp that takes tiles that the next one is needed soon. Not before: a tile that is taken early waits behind
// the one that its CTA still works on, while other CTAs may have nothing to do. Where tiles differ in length, that cost
// up to a tenth of the time.
struct NextTileSignal {
  // A whole warp, once for each tile.
  __device__ static void give() { cutlass::arch::NamedBarrier::arrive(2 * cutlass::NumThreadsPerWarp, kId); }
  // Another one, once for each time.
  __device__ static void wait() { cutlass::arch::NamedBarrier::sync(2 * cutlass::NumThreadsPerWarp, kId); }

 private:
  static constexpr uint32_t kId = 2;  // 0 and 1 are those of the consumer warpgroups
};

static_assert(sizeof(WorkTile) == sizeof(int4), "a work tile is read as one int4");

}  // namespace sparsek
