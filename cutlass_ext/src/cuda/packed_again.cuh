// SPDX-License-Identifier: Apache-2.0
// What a warp of kernel family "wgmma_packed" does with sums that are NaN: it looks whether NaN in B explains them, and
// computes the others again, eight columns at a time.
//
// For that it multiplies the packed A by B again, with 0 in place of Inf and NaN, so that the zeros of absent blocks
// add nothing. The products of Inf and NaN, which are few or make all sums NaN soon, are added one by one where their
// row has a block.
//
// mma m16n8k16 takes columns 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 of A from lane 4 r + c. The order of columns does not
// matter to a sum, so here the lane's are neighbours: of 32 columns of A it loads 8 c to 8 c + 7 at once, of rows r and
// r + 8, the first four of them for one instruction, the others for another. Rows of B are permuted likewise.
#pragma once

#include <cstdint>

#include "cuda/epilogue.cuh"
#include "cuda/launch_args.h"
#include "cuda/mma_sync.cuh"
#include "cuda/pack_a.h"
#include "cuda/packed_rows.cuh"
#include "cuda/ring_kernel.cuh"
#include "cuda/row_store.cuh"
#include "cuda/tma_store.cuh"
#include "plan/work_tile.h"

namespace sparsek::cuda {
namespace wgmma_packed_kernel {

constexpr int kStepK = 32;  // columns of A that are loaded at once: a row of B for each lane
constexpr int kStepsTogether = sizeof(StoreBuffers) / (kStepK * kEight * 2);  // as many as there is shared memory for

// Of groups of 8 columns with NaN in their sums, those in which not every sum of a row with blocks has met a NaN of B
// by the first entries. The sums of the others are NaN. Lane g looks at group g. used: slots of the warp's with blocks.
template <class Element>
__device__ uint32_t not_explained(const LaunchArgs& args, const WorkTile& tile,
                                  const ring_kernel::Slab<ring_kernel::kAnySlots>& slab, uint32_t used,
                                  uint32_t groups) {
  constexpr int kMost = 64, kTogether = 4;  // entries in which the warp has a block
  const SlotsOfWarp slots(args, slab.warp);
  const int64_t col = int64_t(tile.n_tile) * ring_kernel::kTileN + slab.lane * kEight;
  const bool looks = groups >> slab.lane & 1;
  const int columns = looks ? int(max(int64_t(0), min(int64_t(kEight), args.n - col))) : 0;
  const auto* const b = static_cast<const uint16_t*>(args.b) + col;
  // Byte t: the columns in which the rows of slot t have met no NaN.
  const auto in_bytes = [](uint32_t bits) {  // bit 8 t for slot t
    return (bits & 1) | (bits & 2) << 7 | (bits & 4) << 14 | (bits & 8) << 21;
  };
  uint32_t missing = ((1u << columns) - 1) * in_bytes(used);
  const bool whole = __all_sync(kWarp, columns % kEight == 0);
  int looked = 0;
#pragma unroll 1
  for (int first = 0; first < tile.entry_count && looked < kMost && __any_sync(kWarp, missing != 0); first += 32) {
    const int64_t at = int64_t(tile.entry_begin) + first + slab.lane;
    const bool inside = first + slab.lane < tile.entry_count;
    const uint32_t of_lane = inside ? slots.with_block(args, at) : 0;
    const int32_t k_of_lane = inside ? __ldg(args.entry_k + at) : 0;
    uint32_t left = __ballot_sync(kWarp, of_lane != 0);
#pragma unroll 1
    for (; left != 0 && looked < kMost; looked += kTogether) {
      int32_t k[kTogether];
      uint32_t has[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int from = left != 0 ? __ffs(left) - 1 : 0;
        k[i] = __shfl_sync(kWarp, k_of_lane, from);
        has[i] = __shfl_sync(kWarp, of_lane, from);
        left &= left - 1;
      }
      const auto look = [&](auto all_whole) {
        uint4 read[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i)
          read[i] = read_eight<decltype(all_whole)::value>(b + k[i] * args.ldb, columns);
#pragma unroll
        for (int i = 0; i < kTogether; ++i) missing &= ~(in_bytes(has[i]) * which_nan<Element>(read[i]));
      };
      if (whole) {
        look(std::true_type{});
      } else {
        look(std::false_type{});
      }
      if (!__any_sync(kWarp, missing != 0)) break;
    }
  }
  return groups & __ballot_sync(kWarp, missing != 0);
}

// A warp's sums of eight columns of C, in the layout of D in mma_sync.cuh.
template <class Element>
class GroupAgain {
 public:
  __device__ GroupAgain(const LaunchArgs& args, const PackSizes& sizes, const PackMemory& packed, const WorkTile& tile,
                        const ring_kernel::Slab<ring_kernel::kAnySlots>& slab, StoreBuffers& buffers, uint32_t used,
                        int group)
      : args_(args),
        sizes_(sizes),
        tile_(tile),
        slots_(args, slab.warp),
        lane_(slab.lane),
        steps_of_stage_((sizes.units + 1) / 2),
        col_(int64_t(tile.n_tile) * ring_kernel::kTileN + group * kEight),
        columns_(int(min(int64_t(kEight), args.n - col_))),
        buffer_(cute::cast_smem_ptr_to_uint(buffers)) {
    for (int h = 0; h < 2; ++h) empty_[h] = (used >> slots_.of_row(lane_ / 4 + h * 8) & 1) == 0;
    a_ = packed.tiles + tile.m_tile * sizes.stages_of_group * kPackStageBytes +
         (slab.warp * 16 + lane_ / 4) * (kPackColumns * 2);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = i * kStepK + lane_;
      entry_[i] = at < sizes.columns() ? at / sizes.block_k : INT32_MAX / 2;
      in_block_[i] = at % sizes.block_k;
    }
  }

  __device__ void sum(float (&sums)[4]) {
    const int steps = (tile_.entry_count + sizes_.entries - 1) / sizes_.entries * steps_of_stage_;
#pragma unroll
    for (float& x : sums) x = 0.f;
#pragma unroll 1
    for (int first = 0; first < steps; first += kStepsTogether) {
      if (columns_ == kEight) {
        add_steps<true>(first, steps, sums);
      } else {
        add_steps<false>(first, steps, sums);
      }
      bool done = true;
#pragma unroll
      for (int i = 0; i < 4; ++i) done = done && (isnan(others_[i]) || empty_[i / 2]);
      if (__all_sync(kWarp, done)) break;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[i] += others_[i];
  }

 private:
  // The entry of the lane's row of B in a step; behind the tile's last one where there is none.
  __device__ int entry_of(int step) const {
    return step / steps_of_stage_ * sizes_.entries + (step % steps_of_stage_ == 0 ? entry_[0] : entry_[1]);
  }

  template <bool Whole>
  __device__ void add_steps(int first, int steps, float (&sums)[4]) {
    const auto* const of_b = static_cast<const uint16_t*>(args_.b) + col_;
    const int r = lane_ / 4, c = lane_ % 4;
    int32_t k[kStepsTogether];  // the lane's row of B; negative where there is none
#pragma unroll
    for (int i = 0; i < kStepsTogether; ++i) {
      const int entry = entry_of(first + i);
      const int in_block = (first + i) % steps_of_stage_ == 0 ? in_block_[0] : in_block_[1];
      k[i] = INT32_MIN;
      if (entry < tile_.entry_count) k[i] = __ldg(args_.entry_k + int64_t(tile_.entry_begin) + entry) + in_block;
      if (k[i] >= args_.cols) k[i] = INT32_MIN;
    }
    uint32_t exists = 0;  // bit i: k[i]
#pragma unroll
    for (int i = 0; i < kStepsTogether; ++i) exists |= uint32_t(k[i] >= 0) << i;
    uint4 b[kStepsTogether], a[kStepsTogether][2];
    bool odd = false;
#pragma unroll
    for (int i = 0; i < kStepsTogether; ++i) {
      const int stage = (first + i) / steps_of_stage_, vector = (first + i) % steps_of_stage_ * 4 + c;
      const bool packed = first + i < steps && vector < sizes_.units * (kPackUnit / kEight);
      const char* const from = a_ + int64_t(stage) * kPackStageBytes + (vector ^ r) * 16;
      b[i] = read_eight<Whole>(of_b + max(k[i], 0) * args_.ldb, k[i] < 0 ? 0 : columns_);
      a[i][0] = a[i][1] = {};
      if (packed) a[i][0] = __ldg(reinterpret_cast<const uint4*>(from));
      if (packed) a[i][1] = __ldg(reinterpret_cast<const uint4*>(from + 8 * kPackColumns * 2));
    }
#pragma unroll
    for (int i = 0; i < kStepsTogether; ++i) {
      odd |= (any_not_finite<Element>(b[i]) | any_not_finite<Element>(a[i][0]) | any_not_finite<Element>(a[i][1])) != 0;
    }
    if (__any_sync(kWarp, odd)) {
#pragma unroll
      for (int i = 0; i < kStepsTogether; ++i) add_others(first + i, exists >> i & 1, a[i], b[i]);
    }
#pragma unroll
    for (int i = 0; i < kStepsTogether; ++i) {
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(buffer_ + (i * kStepK + lane_) * 16), "r"(b[i].x),
                   "r"(b[i].y), "r"(b[i].z), "r"(b[i].w)
                   : "memory");
    }
    __syncwarp();
    const int row_of_b = lane_ % 8 / 2 * 8 + lane_ % 2 + lane_ / 8 * 2;
#pragma unroll
    for (int i = 0; i < kStepsTogether; ++i) {
      uint32_t of_b[4];
      load_matrices_transposed(of_b, buffer_ + (i * kStepK + row_of_b) * 16);
      mma_m16n8k16<Element>(sums, {a[i][0].x, a[i][1].x, a[i][0].y, a[i][1].y}, of_b[0], of_b[1]);
      mma_m16n8k16<Element>(sums, {a[i][0].z, a[i][1].z, a[i][0].w, a[i][1].w}, of_b[2], of_b[3]);
    }
    __syncwarp();
  }

  // Adds the products of Inf and NaN in blocks that exist, and puts 0 in place of these. exists: the lane's row of B.
  __device__ void add_others(int step, bool exists, uint4 (&a)[2], uint4& b) {
    const int r = lane_ / 4, c = lane_ % 4;
    const uint32_t of_a = (which_not_finite<Element>(a[0]) | which_not_finite<Element>(a[1])) << c * 8;
    uint32_t columns = __ballot_sync(kWarp, any_not_finite<Element>(b) != 0) |
                       (__reduce_or_sync(kWarp, of_a) & __ballot_sync(kWarp, exists));
    if (columns == 0) return;
    const uint32_t with_block = exists ? slots_.with_block(args_, int64_t(tile_.entry_begin) + entry_of(step)) : 0;
    uint32_t present[2] = {};  // columns in which the lane's rows have a block
#pragma unroll
    for (int t = 0; t < kMostSlots; ++t) {
      const uint32_t of_slot = __ballot_sync(kWarp, with_block >> t & 1);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (slots_.of_row(r + h * 8) == t) present[h] = of_slot;
      }
    }
#pragma unroll 1
    for (; columns != 0; columns &= columns - 1) {
      const int column = __ffs(columns) - 1, word = column % 8 / 2;
      const uint4 row = {__shfl_sync(kWarp, b.x, column), __shfl_sync(kWarp, b.y, column),
                         __shfl_sync(kWarp, b.z, column), __shfl_sync(kWarp, b.w, column)};
      const uint32_t pair = word_of(row, c);
      const float y[2] = {number<Element>(pair, 0), number<Element>(pair, 1)};
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float x = number<Element>(__shfl_sync(kWarp, word_of(a[h], word), r * 4 + column / 8), column % 2);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& sum = others_[h * 2 + j];
          if ((present[h] >> column & 1) != 0 && !(isfinite(x) && isfinite(y[j]))) sum = fmaf(x, y[j], sum);
        }
      }
    }
    a[0] = without_not_finite<Element>(a[0]);
    a[1] = without_not_finite<Element>(a[1]);
    b = without_not_finite<Element>(b);
  }

  const LaunchArgs& args_;
  const PackSizes& sizes_;
  const WorkTile& tile_;
  const SlotsOfWarp slots_;
  const int lane_, steps_of_stage_;
  const int64_t col_;
  const int columns_;
  const uint32_t buffer_;  // (kStepsTogether, kStepK, kEight)
  const char* a_;
  int entry_[2], in_block_[2];  // of the lane's row of B in both steps of a stage
  bool empty_[2];               // rows r and r + 8 have no block
  float others_[4] = {};        // sums of the products of Inf and NaN
};

// Stores groups of 8 columns, of which all sums are NaN but those of rows without blocks.
__device__ inline void store_nan(const LaunchArgs& args, const WorkTile& tile,
                                 const ring_kernel::Slab<ring_kernel::kAnySlots>& slab, uint32_t used,
                                 uint32_t groups) {
  const SlotsOfWarp slots(args, slab.warp);
  const uint32_t row[2] = {slab.row(args, tile, 0), slab.row(args, tile, 1)};
  float of_row[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) of_row[h] = used >> slots.of_row(slab.lane / 4 + h * 8) & 1 ? NAN : 0.f;
#pragma unroll 1
  for (int chunk = 0; chunk < ring_kernel::kChunks; ++chunk) {
    const int64_t col = int64_t(tile.n_tile) * ring_kernel::kTileN + chunk * ring_kernel::kChunkColumns;
    float sums[kEight][4];
#pragma unroll
    for (int i = 0; i < kEight * 4; ++i) sums[i / 4][i % 4] = of_row[i % 4 / 2];
    store_any<true>(args, sums,
                    {{row[0], row[1]},
                     uint32_t(col),
                     int(min(int64_t(ring_kernel::kChunkColumns), args.n - col)),
                     slab.lane % 4 * 2},
                    ~groups >> chunk * kEight);
  }
}

// Computes and stores the groups of 8 columns of the warp's rows that are set in `groups`.
template <class Element>
__device__ void compute_again(const LaunchArgs& args, const PackSizes& sizes, const PackMemory& packed,
                              const WorkTile& tile, const ring_kernel::Slab<ring_kernel::kAnySlots>& slab,
                              StoreBuffers& buffers, uint32_t groups) {
  const uint32_t used = SlotsOfWarp(args, slab.warp).with_blocks(args, tile, slab.lane);
  const uint32_t again = not_explained<Element>(args, tile, slab, used, groups);
  if (again != groups) store_nan(args, tile, slab, used, groups & ~again);
  groups = again;
  wait_for_stores();  // which read the buffers
  __syncwarp();
#pragma unroll 1
  for (; groups != 0; groups &= groups - 1) {
    const int group = __ffs(groups) - 1;
    float sums[4];
    GroupAgain<Element>(args, sizes, packed, tile, slab, buffers, used, group).sum(sums);
    const int64_t col = int64_t(tile.n_tile) * ring_kernel::kTileN + group * kEight + slab.lane % 4 * 2;
    // Each turn moves the sums to the register that the code names: an epilogue for each would be long.
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int64_t row = slab.row(args, tile, i / 2);
      if (row < args.rows && col + i % 2 < args.n) write_element(args, row, col + i % 2, sums[0]);
#pragma unroll
      for (int j = 0; j < 3; ++j) sums[j] = sums[j + 1];
    }
  }
}

}  // namespace wgmma_packed_kernel
}  // namespace sparsek::cuda
