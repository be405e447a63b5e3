// SPDX-License-Identifier: Apache-2.0
// The producers of the kernel family "wgmma_gather".
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/gather_tiles.cuh"
#include "cuda/launch_args.h"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
namespace wgmma_gather_kernel {

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
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(here ? 16 : 0)
               : "memory");
}

// Each producer warp fills one stage of the ring by itself. So the work that is needed once for a stage is done by one
// warp, and while that warp waits for the plan of its next stage the others fill theirs. Lanes are mapped to the
// vectors of A: kVectors side by side in a row, kUnitVectors of them in a unit. The first lane of each unit loads B.
template <int Slots, int Stages>
struct Producer {
  static_assert(Stages == kProducerWarps, "each producer warp has one stage");
  static constexpr int kSlotRows = kTileM / Slots;
  static constexpr int kTurns = kSwizzleRows / kRowStep;

  const Params& p;
  Storage<Slots, Stages>& shared;
  int warp, lane, vector, first_row, unit, k_in_unit;
  uint32_t to_a[kTurns];

  __device__ Producer(const Params& params, Storage<Slots, Stages>& storage, int of_warp, int of_lane)
      : p(params), shared(storage), warp(of_warp), lane(of_lane) {
    vector = lane % kVectors, first_row = lane / kVectors;
    unit = vector / kUnitVectors, k_in_unit = vector % kUnitVectors * (16 / kElementBytes);
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      const int row = first_row + i * kRowStep;
      to_a[i] = cute::cast_smem_ptr_to_uint(shared.a[warp]) + row * kRowBytesA + (vector ^ row) * 16;
    }
  }

  // Loads the chunks of a second walk of B of the lane's unit: all of it, or half where the rest is beyond the block.
  __device__ void load_chunks(uint64_t* barrier, int panel, const WalkedChunks& chunks, int b_row, bool half) const {
    constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
    const int parts = half ? 1 : 2;
#pragma unroll 1
    for (int i = 0; i < chunks.count() * parts; ++i) {
      const int at = i / parts, part = i % parts;
      const int chunk = panel * kChunks + (at == 0 ? chunks.first() : chunks.second());
      const BoxOrigin from = p.boxes.origin(chunk, b_row + part * (kUnitK / 2));
      cute::SM90_TMA_LOAD_3D::copy(&p.map_half, barrier, kHint,
                                   shared.b[warp] + unit * kUnitBytesB + at * kChunkBytes + part * (kChunkBytes / 2),
                                   from.x, from.y, from.z);
    }
  }

  // Writes zeros as the second half of the lane's unit of B, with the other lanes of the unit, and with the copies of
  // A: unlike zeros of A times rows of B beyond the block, zeros of both add nothing, whatever B holds.
  __device__ void clear_half_unit() const {
    constexpr int kLanes = 32 / kUnits, kRowBytes = kChunkColumns * kElementBytes;
    const int lane_of_unit = first_row * kUnitVectors + vector % kUnitVectors;
    const uint32_t to = cute::cast_smem_ptr_to_uint(shared.b[warp]) + unit * kUnitBytesB + lane_of_unit * 16;
#pragma unroll
    for (int at = 0; at < kWalkChunks * kChunkBytes; at += kLanes * 16) {
      if (at % kChunkBytes >= kUnitK / 2 * kRowBytes) copy_or_clear(to + at, p.args.values, false);
    }
  }

  // Fills the stages of a tile. In the first walk: publishes the tile that follows, in the place `next`, if the lane
  // claims. In the second: of some chunks of B, and says which slots have a block.
  template <bool Again>
  __device__ void fill(const WorkTile& tile, uint32_t& phase, int& skip, bool claims, const TilePlace<kTileDepth>& next,
                       const WalkedChunks& walked) const {
    const LaunchArgs& args = p.args;
    const int box_bytes = p.boxes.chunks * kChunkBytes;
    auto& full = shared.full[warp];
    const auto barrier = reinterpret_cast<uint64_t*>(&full);
    bool publishes = claims;
    bool cleared = false;  // the second half of the lane's unit of B is zeros already
    const int panel = panel_of(tile);
    const int boxes = p.boxes.of_panel(args, panel);

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
        slot_bytes[j] = uint32_t(row) % uint32_t(args.block_m) * args.block_k * kElementBytes;
      }
    }

    int stages = stages_of(p, tile.entry_count) - skip;
    for (; stages > 0; stages -= kProducerWarps, phase ^= 1) {
      // Only kNoBlock has all bits set, so the AND is kNoBlock only where no slot has a block.
      int32_t upper = kNoBlock, lower = kNoBlock;
      if constexpr (!Again) {
#pragma unroll
        for (int j = 0; j < (Slots + 1) / 2; ++j) {
          upper &= plan.block[j];
          lower &= plan.block[Slots / 2 + j];
        }
      }
      // The next tile is taken not before it is needed soon, see NextTileSignal: with this warp's last but one stage of
      // the tile, behind whose copies the counter's answer has arrived.
      const bool takes = publishes && stages <= 2 * kProducerWarps;
      uint32_t claimed = 0;
      if (takes) claimed = claim_tile(tile_list(args));
      const bool exists = plan.b_row != kNoBlock;
      constexpr uint32_t kVectorLanes = (1u << kVectors) - 1;
      uint32_t present = 0;
      if constexpr (!Again) {
        present = (__ballot_sync(0xffffffffu, exists && upper != kNoBlock) & kVectorLanes) |
                  (__ballot_sync(0xffffffffu, exists && lower != kNoBlock) & kVectorLanes) << kVectors;
      }
      const bool loads_b = exists && first_row == 0 && k_in_unit == 0;
      const int units = __popc(__ballot_sync(0xffffffffu, loads_b));
      bool half = false;  // of the lane's unit: only the first half is in the block
      int halves = 0;     // how many of the stage's units
      if constexpr (Again) {
        half = plan.k + kUnitK > args.block_k;
        halves = __popc(__ballot_sync(0xffffffffu, loads_b && half));
      }
      shared.empty[warp].wait(phase);
      if constexpr (Again) {
        if (first_row == 0 && k_in_unit == 0) {
          // By signs: kNoBlock alone is below 0, and predicates are few.
          uint32_t slots = 0;
#pragma unroll
          for (int j = 0; j < Slots; ++j) slots |= uint32_t(~plan.block[j]) >> 31 << j;
          slots &= uint32_t(~(plan.b_row >> 31));
#pragma unroll
          for (int g = 0; g < kWarpgroups; ++g) {
            shared.own.slots_present[warp][g][unit] =
                uint8_t(slots >> (Slots == 1 ? 0 : g * kGroupSlots<Slots>)) & ((1u << kGroupSlots<Slots>)-1);
          }
        }
        __syncwarp();
      }
      if (lane == 0) {
        if constexpr (Again) {
          full.arrive_and_expect_tx((2 * units - halves) * walked.count() * (kChunkBytes / 2));
        } else {
          shared.present[warp] = present;
          full.arrive_and_expect_tx(units * boxes * box_bytes);
        }
      }
      __syncwarp();
      if (loads_b) {
        constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
        if constexpr (Again) {
          load_chunks(barrier, panel, walked, plan.b_row + plan.k, half);
        } else {
#pragma unroll 1
          for (int box = 0; box < boxes; ++box) {
            const BoxOrigin from = p.boxes.origin(panel * kChunks + box * p.boxes.chunks, plan.b_row + plan.k);
            cute::SM90_TMA_LOAD_3D::copy(&p.map_b, barrier, kHint,
                                         shared.b[warp] + unit * kUnitBytesB + box * box_bytes, from.x, from.y, from.z);
          }
        }
      }
      if (Again && exists) {
        if (half && !cleared) clear_half_unit();
        cleared = half;
      }
      const int k = plan.k + k_in_unit;
      const bool in_block = exists && k < args.block_k;
      const auto* const values =
          static_cast<const std::byte*>(args.values) + (int64_t(first_row) * args.block_k + k) * kElementBytes;
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
        shared.tiles.publish(tile_list(args), claimed, next);
        publishes = false;
      }
    }
    skip = -stages;
    if (publishes) shared.tiles.publish(tile_list(args), claim_tile(tile_list(args)), next);
  }

  // Fills the stages of all marked tiles of a round.
  __device__ void fill_again(uint32_t& phase, int& skip) const {
#pragma unroll 1
    for (uint32_t at = shared.own.round.next_marked(0); at < kRoundTiles; at = shared.own.round.next_marked(at + 1)) {
#pragma unroll 1
      for (WalkedChunks chunks = {shared.own.round.marked_chunks(at)}; chunks.left != 0; chunks = chunks.next()) {
#pragma unroll 1
        for (int done = 0; done < shared.own.round.tile[at].entry_count;) {
          if (done != 0 && shared.own.meeting.agree(warp, lane, true)) break;
          WorkTile part = shared.own.round.tile[at];
          part.entry_begin += done;
          part.entry_count = done == 0 ? entries_before_look(p, part.entry_count) : part.entry_count - done;
          done += part.entry_count;
          fill<true>(part, phase, skip, false, {}, chunks);
        }
      }
    }
  }

  // Walks the marked tiles of a round again. tile: the first one of the next round.
  __device__ void second_walk(uint32_t& phase, int& skip, WorkTile& tile) const {
    if (warp == 0 && lane == 0) shared.own.round.next = tile;
    shared.own.meeting.meet_by_one(warp, lane);
    const bool any = shared.own.round.any();
    if (tile.m_tile != kNoTile) shared.own.meeting.meet(warp, lane);  // before there are marks of the next round
    if (!any) return;
    fill_again(phase, skip);
    shared.own.meeting.meet(warp, lane);
    if (warp == 0) shared.own.round.clear(lane, 32);
    tile = shared.own.round.next;
    shared.own.meeting.meet(warp, lane);
  }
};

// Fills the stages of a CTA's tiles.
template <int Slots, int Stages>
__device__ void produce(const Params& p, Storage<Slots, Stages>& shared) {
  const LaunchArgs& args = p.args;
  uint32_t phase = 1;
  int skip = read_thread() / 32;  // stages of the tile before the first one of this warp
  TileCount count;
  WorkTile tile = first_tile<1, kMaySplit>(args);
  const auto own = [&] {
    const int thread = read_thread();
    __builtin_assume(thread >= 0 && thread < kProducers);
    return Producer<Slots, Stages>(p, shared, thread / 32, thread % 32);
  };
  while (true) {
    const auto producer = own();
    do {
      producer.template fill<false>(tile, phase, skip, producer.warp == 0 && producer.lane == 0, count.place(), {});
      __syncwarp();
      tile = within<1, kMaySplit>(args, shared.tiles.next(count.place(), producer.lane));
      ++count;
    } while (tile.m_tile != kNoTile && !count.begins_round());
    if (p.multiplies_zeros) own().second_walk(phase, skip, tile);
    if (tile.m_tile == kNoTile) return;
  }
}

}  // namespace wgmma_gather_kernel
}  // namespace sparsek::cuda
