// SPDX-License-Identifier: Apache-2.0
// The producer warps of kernel family "wgmma_scatter".
#pragma once

#include "cuda/ring.cuh"
#include "cuda/scatter_parts.cuh"
#include "cuda/shared_address.cuh"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

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

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
