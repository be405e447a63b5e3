// SPDX-License-Identifier: Apache-2.0
// The producer warps of kernel family "wgmma_scatter".
#pragma once

#include "cuda/dependent_launch.cuh"
#include "cuda/ring.cuh"
#include "cuda/scatter_again.cuh"
#include "cuda/scatter_parts.cuh"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

constexpr uint32_t kProducersMeet = 2;  // a named barrier; those before are the consumers' warpgroups'

// By a warp: begins to load B's rows of a stage, whose bytes `full` expects.
template <class Storage>
__device__ void load_b(const Params& p, uint32_t full, uint32_t to, int boxes, int panel, int stage, int lane) {
  __syncwarp();
  if (lane >= boxes) return;
  const int chunk = lane * p.boxes.chunks;
  load_box(p.map_b, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL), to + chunk * kChunkBytes,
           origin_of_box<Storage>(p, panel * (Storage::kTileN / kChunkColumns) + chunk, stage * p.rows.sizes.columns));
}

// Likewise, of the columns of a pass only, to where the first ones of a panel lie.
template <class Storage>
__device__ void load_chunk(const Params& p, uint32_t full, uint32_t to, const Pass& pass, int panel, int stage,
                           int lane) {
  __syncwarp();
  if (lane > 0) return;
  const int chunk = (panel * Storage::kTileN + pass.first_group * 8) / kChunkColumns;
  load_box(p.map_chunk, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL), to,
           origin_of_box<Storage>(p, chunk, stage * p.rows.sizes.columns));
}

// By a warp, where A is laid out: starts the copies of a tile's stages. ends(step): there are no more.
// load_b(full, to, stage) starts the copy of B's rows, of so many bytes.
template <class Storage, class End, class Load>
__device__ void copy_tile(const Params& p, Storage& shared, RingState<Storage::kStages>& state, const Place& place,
                          int lane, const End& ends, uint32_t bytes_of_b, const Load& load_b) {
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_a = shared_address(shared.a), first_b = shared_address(shared.b);
  const int64_t stages = p.rows.sizes.stages;
  const PartOfSteps own(p, place.steps(p));
  const Step* const steps = p.rows.lists.steps + int64_t(place.group) * kQuarters * stages + own.begin;
  const uint8_t* const from = p.stages + (place.group * stages + own.begin) * kStageBytesA;
  int words = 0;  // of as many steps as the warp has lanes
#pragma unroll 1
  for (int step = 0; step < own.count && !ends(step); ++step, ++state) {
    if (step % 32 == 0 && !p.rows.has_all_stages) {
      words = step + lane < own.count ? __ldg(&steps[step + lane].word) : 0;
    }
    const uint32_t full = first_full + state.stage * kBarrierBytes;
    wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
    if (lane == 0) {
      arrive_and_expect(full, kStageBytesA + bytes_of_b);
      copy_to_shared(first_a + state.stage * kStageBytesA, from + int64_t(step) * kStageBytesA, kStageBytesA, full);
    }
    const int listed = Step{0, __shfl_sync(kWarp, words, step % 32)}.stage();
    load_b(full, first_b + state.stage * Storage::kStageBytesB, p.rows.has_all_stages ? own.begin + step : listed);
  }
}

// By all producer warps, where A is laid out: fills the stages of the CTA's tiles, and of what is computed again.
template <class Storage>
__device__ void copy_stages(const Params& p, Storage& shared) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  RingState<Storage::kStages> state;
  if (warp == 0) {
#pragma unroll 1
    for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
      const Place place(p, tile);
      const int boxes = boxes_of<Storage>(p, place.panel);
      const auto never = [](int) { return false; };
      copy_tile(p, shared, state, place, lane, never, boxes * bytes_of_box<Storage>(p),
                [&](uint32_t full, uint32_t to, int stage) {
                  load_b<Storage>(p, full, to, boxes, place.panel, stage, lane);
                });
    }
  }
  if (!meet_behind_tiles(shared) || warp != 0) return;
  for_each_pass(p, shared, [&](const Pass& pass) {
    const Place place(p, pass.tile);
    const auto ends = [&](int step) { return ends_before(shared, step, state); };
    copy_tile(p, shared, state, place, lane, ends, bytes_of_chunk<Storage>(p),
              [&](uint32_t full, uint32_t to, int stage) {
                load_chunk<Storage>(p, full, to, pass, place.panel, stage, lane);
              });
  });
}

// By all producer warps: fills the stages of what is computed again. The warps go on taking turns.
template <class Storage>
__device__ void produce_again(const Params& p, Storage& shared, int quarter, int turn, int lane) {
  constexpr int kStages = Storage::kStages;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_a = shared_address(shared.a) + quarter * kQuarterBytes, first_b = shared_address(shared.b);
  uint32_t at = 0;  // steps before
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) at += PartOfSteps(p, Place(p, tile).steps(p)).count;
  RingState<kStages> state = {int(at % kStages), at / kStages % 2};
  for_each_pass(p, shared, [&](const Pass& pass) {
    const Place place(p, pass.tile);
    const PartOfSteps own(p, place.steps(p));
    const Step* const steps =
        p.rows.lists.steps + (int64_t(place.group) * kQuarters + quarter) * p.rows.sizes.stages + own.begin;
#pragma unroll 1
    for (int step = 0; step < own.count && !ends_before(shared, step, state); ++step, ++state, ++at) {
      if (int(at % kTurns) != turn) continue;
      const Step list = steps[step];
      const uint32_t full = first_full + state.stage * kBarrierBytes, to = first_a + state.stage * kStageBytesA;
      wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
      if (quarter == 0) {
        if (lane == 0) arrive_and_expect(full, bytes_of_chunk<Storage>(p));
        load_chunk<Storage>(p, full, first_b + state.stage * Storage::kStageBytesB, pass, place.panel, list.stage(),
                            lane);
      }
      clear_quarter(to, lane);
      __syncwarp();
      const int64_t first = int64_t(list.begin) * kUnit;
#pragma unroll 4
      for (int i = lane; i < list.units() * kUnit; i += 32) {
        store_half(to + __ldg(p.rows.lists.places + first + i), p.values[first + i]);
      }
      __syncwarp();
      if (lane == 0) arrive_in_cluster<1>(full);
    }
  });
}

// By all producer warps: fills the stages of the CTA's tiles, one after the other in the ring.
template <class Storage>
__device__ void produce(const Params& p, Storage& shared) {
  constexpr int kStages = Storage::kStages, kSlots = Storage::kSlots;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, quarter = warp % kQuarters, turn = warp / kQuarters;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_a = shared_address(shared.a) + quarter * kQuarterBytes, first_b = shared_address(shared.b);
  const uint32_t first_part = shared_address(shared.parts[warp]), first_copied = shared_address(shared.copied[warp]);
  Parts<Storage> parts(p, quarter, turn, lane);
  wait_for_previous_launch();  // what was read until here is of the plan
  RingState<kStages> state;
#pragma unroll
  for (int t = 0; t < kTurns - 1; ++t) {
    if (t < turn) ++state;
  }
  Part ahead[kSlots];
#pragma unroll
  for (int i = 0; i < kSlots; ++i)
    ahead[i] = parts.copy_next(first_part + i * kPartBytes, first_copied + i * kBarrierBytes);
  RingState<kSlots> slot;
#pragma unroll 1
  while (!ahead[0].is_none()) {
    const Part part = ahead[0];
    const uint32_t from = first_part + slot.stage * kPartBytes, copied = first_copied + slot.stage * kBarrierBytes;
    const uint32_t full = first_full + state.stage * kBarrierBytes, to = first_a + state.stage * kStageBytesA;
    Pairs pairs;
    wait_for_phase(copied, slot.phase);
    pairs.read(from, part.units(), lane);
    if (part.is_first()) {
      wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
      if (quarter == 0) {
        if (lane == 0) arrive_and_expect(full, part.boxes() * bytes_of_box<Storage>(p));
        load_b<Storage>(p, full, first_b + state.stage * Storage::kStageBytesB, part.boxes(), part.panel, part.stage(),
                        lane);
      }
      clear_quarter(to, lane);
      __syncwarp();
    }
    pairs.write(to, part.units());
    __syncwarp();
    if (part.is_last()) {
      if (lane == 0) arrive_in_cluster<1>(full);
#pragma unroll
      for (int t = 0; t < kTurns; ++t) ++state;
    }
#pragma unroll
    for (int i = 0; i + 1 < kSlots; ++i) ahead[i] = ahead[i + 1];
    ahead[kSlots - 1] = parts.copy_next(from, copied);
    ++slot;
  }
  if (meet_behind_tiles(shared)) produce_again(p, shared, quarter, turn, lane);
}

// Rows of B that no box brings.
template <class Storage>
__device__ void clear_rest(const Params& p, Storage& shared) {
  if constexpr (Storage::kMajorB == Major::K) return;
  const int first = p.rows.sizes.columns * kChunkColumns * kElementBytes;
  for (int i = first + threadIdx.x * 16; i < kChunkBytes; i += Storage::kProducers * 16) {
    for (int chunk = 0; chunk < Storage::kStages * Storage::kTileN / kChunkColumns; ++chunk) {
      *reinterpret_cast<uint4*>(shared.b[0] + chunk * kChunkBytes + i) = uint4{};
    }
  }
  cutlass::arch::fence_view_async_shared();
  cutlass::arch::NamedBarrier::sync(Storage::kProducers, kProducersMeet);
}

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
