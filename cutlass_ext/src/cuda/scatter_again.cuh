// SPDX-License-Identifier: Apache-2.0
// What kernel family "wgmma_scatter" does with NaN. Behind its last tile, a CTA computes the groups of 8 columns that
// had NaN in their sums again, some columns at a time: a pass. Producers bring A's stages and B's columns of a tile
// once more, and each warp multiplies its 16 rows without zeros of absent elements times Inf or NaN
// (marked_sums.cuh). A pass ends early where all of its sums are NaN.
#pragma once

#include "cuda/column_store.cuh"
#include "cuda/marked_sums.cuh"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/scatter_join.cuh"
#include "cuda/scatter_shared.cuh"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

// Of device memory, where a CTA has more tiles than it can note in shared memory. ctas: of the product.
template <class Storage>
constexpr int64_t bytes_of_nan(int64_t tiles, int64_t ctas) {
  return tiles > ctas * Storage::kNotedTiles ? tiles * kSlabs * int64_t{sizeof(uint32_t)} : 0;
}

// What the warp of a slab, 16 rows of a tile, notes. Bit g: its sums have NaN in group g of 8 columns.
template <class Storage>
__device__ uint32_t& nan_of(const Params& p, Storage& shared, int tile, int slab) {
  if (p.with_nan != nullptr) return p.with_nan[int64_t(tile) * kSlabs + slab];
  return shared.with_nan[(tile - int(blockIdx.x)) / int(gridDim.x)][slab];
}

// By all threads of the CTA, behind their last tile: whether there are passes. Producers and consumers come from
// different places in the code, which only a barrier in shared memory allows on all accounts.
template <class Storage>
__device__ bool meet_behind_tiles(Storage& shared) {
  const uint32_t behind_tiles = shared_address(&shared.behind_tiles);
  __syncwarp();
  if (threadIdx.x % 32 == 0) arrive_in_cluster<1>(behind_tiles);
  wait_for_phase(behind_tiles, 0);
  return shared.has_nan;
}

// Of the rows that the warps multiply at once, in one of a tile's `halves`: the columns of a pass.
struct Pass {
  int tile, half;
  int first_group;  // of 8 columns
};

// Calls f for each pass of the CTA's tiles. All of its warps see the same ones, once they have met behind the last
// tile.
template <class Storage, class Function>
__device__ void for_each_pass(const Params& p, Storage& shared, const Function& f) {
  constexpr int kGroups = Storage::kTileN / 8, kOfPass = Storage::kPassGroups;
  constexpr int kSlabsAtOnce = kSlabs / Storage::kHalves;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
#pragma unroll 1
    for (int half = 0; half < Storage::kHalves; ++half) {
      uint32_t groups = 0;
#pragma unroll
      for (int slab = 0; slab < kSlabsAtOnce; ++slab) {
        groups |= nan_of(p, shared, tile, half * kSlabsAtOnce + slab);
      }
#pragma unroll 1
      for (int first = 0; first < kGroups; first += kOfPass) {
        if ((groups >> first & ((1u << kOfPass) - 1)) != 0) f(Pass{tile, half, first});
      }
    }
  }
}

// Whether a pass ends before a step, since the sums of all warps were NaN when they released the stage that the step
// takes. This is the same for all warps of the CTA: none notes anything there in this round of the ring before all
// producers have decided to bring the step, and none in the next round before all that multiply have released it.
template <class Storage>
__device__ bool ends_before(Storage& shared, int step, const RingState<Storage::kStages>& state) {
  if (step < Storage::kStages) return false;
  wait_for_phase(shared_address(shared.empty) + state.stage * kBarrierBytes, state.phase ^ 1);
  bool all = true;
#pragma unroll
  for (int warp = 0; warp < Storage::kConsumerWarps; ++warp) {
    all = all && static_cast<const volatile bool&>(shared.done[state.phase ^ 1][state.stage][warp]);
  }
  return all;
}

// A warp's part of a pass.
template <class Element, class Storage>
class AgainRows {
 public:
  static constexpr int kGroups = Storage::kPassGroups;

  __device__ AgainRows(const Params& p, Storage& shared, const Pass& pass, int warp, int lane)
      : p_(p), pass_(pass), lane_(lane), place_(p, pass.tile) {
    slab_ = pass.half * (kSlabs / Storage::kHalves) + warp;
    first_row_ = place_.group * kTileM + slab_ * kStoreRows;
    groups_ = nan_of(p, shared, pass.tile, slab_) >> pass.first_group & ((1u << kGroups) - 1);
    const uint32_t row[2] = {this->row(0), this->row(1)};
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint32_t block_row = min(row[h], uint32_t(p.args.rows) - 1) / uint32_t(p.args.block_m);
      has_blocks_[h] =
          row[h] < p.args.rows && __ldg(p.rows.row_ptr + block_row) != __ldg(p.rows.row_ptr + block_row + 1);
    }
    done_ = groups_ == 0;
  }

  __device__ int steps() const { return PartOfSteps(p_, place_.steps(p_)).count; }

  // a, b: a stage of the ring. Returns whether no later step changes a sum.
  __device__ bool add(int step, uint32_t a, uint32_t b) {
    constexpr int kSteps = 4;  // from a look at the sums to the next one, but for the first ones
    if (done_) return true;
    sums_.add(a + slab_ * (kStoreRows * kListRowBytes), b, pass_.first_group % 8, lane_);
    if (sums_.any_met && (step < kSteps || step % kSteps == 0)) done_ = all_stay_nan();
    return done_;
  }

  __device__ void store() {
    if (groups_ == 0) return;
    float results[kGroups][4];
#pragma unroll
    for (int i = 0; i < kGroups * 4; ++i) results[i / 4][i % 4] = sums_.result(i / 4, i % 4);
    if (p_.parts > 1) {
      float4* const to = p_.sums + first_sum(pass_.tile, slab_, Storage::kTileN / 8) + pass_.first_group * 32 + lane_;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        const float(&sums)[4] = results[g];
        if ((groups_ >> g & 1) != 0) to[g * 32] = {sums[0], sums[1], sums[2], sums[3]};
      }
    } else {
      const uint32_t rows[2] = {row(0), row(1)};
      const int64_t first_col = int64_t(place_.panel) * Storage::kTileN + pass_.first_group * 8;
      if constexpr (Storage::kAnyC) {
        write_either_major(p_.args, results, rows, first_col, lane_, ~groups_);
      } else {
        store_rows<Element, true>(p_.args, results, rows, first_col, lane_, ~groups_);
      }
    }
  }

 private:
  __device__ uint32_t row(int h) const { return first_row_ + lane_ / 4 + 8 * h; }

  // Of the groups that are computed again, in rows that have blocks: the sums of others are 0.
  __device__ bool all_stay_nan() const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kGroups * 4; ++i) {
      const bool counts = has_blocks_[i % 4 / 2] && (groups_ >> i / 4 & 1) != 0;
      all = all && (!counts || sums_.stays_nan(i / 4, i % 4));
    }
    return __all_sync(kWarp, all);
  }

  const Params& p_;
  const Pass pass_;
  int lane_, slab_;
  Place place_;
  uint32_t first_row_, groups_;
  bool has_blocks_[2], done_;
  MarkedSums<Element, kGroups, Storage::kMajorB> sums_;
};

// By the warps that multiply: computes the passes. state: of the ring, behind the last tile.
template <class Element, class Storage>
__device__ void compute_again(const Params& p, Storage& shared, RingState<Storage::kStages>& state) {
  const int warp = int(threadIdx.x - Storage::kProducers) / 32, lane = threadIdx.x % 32;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_a = shared_address(shared.a), first_b = shared_address(shared.b);
  for_each_pass(p, shared, [&](const Pass& pass) {
    AgainRows<Element, Storage> own(p, shared, pass, warp, lane);
    const int steps = own.steps();
#pragma unroll 1
    for (int step = 0; step < steps && !ends_before(shared, step, state); ++step, ++state) {
      wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
      const uint32_t a = first_a + state.stage * kStageBytesA, b = first_b + state.stage * Storage::kStageBytesB;
      const bool done = own.add(step, a, b);
      __syncwarp();
      if (lane == 0) {
        shared.done[state.phase][state.stage][warp] = done;
        arrive_in_cluster<1>(first_empty + state.stage * kBarrierBytes);
      }
    }
    own.store();
  });
}

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
