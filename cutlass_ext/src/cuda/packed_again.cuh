// SPDX-License-Identifier: Apache-2.0
// What a warp of kernel family "wgmma_packed" does with sums that are NaN: it computes them again, by fp32 FMAs, from
// the blocks that its rows have.
#pragma once

#include <cstdint>

#include "cuda/epilogue.cuh"
#include "cuda/launch_args.h"
#include "cuda/ring_kernel.cuh"
#include "plan/work_tile.h"

namespace sparsek::cuda {
namespace wgmma_packed_kernel {

constexpr uint32_t kWarp = 0xffffffffu;
constexpr int kLaneColumns = ring_kernel::kChunkColumns / 2;  // lanes r and r + 16 have row r, half of the columns each

// Adds a (row of A) times elements of a row of B, `columns` of which are in B.
template <class Element>
__device__ void add_row(float a, const Element* b, int64_t columns, bool aligned, float (&sums)[kLaneColumns]) {
  constexpr int kVector = 16 / sizeof(Element);
#pragma unroll
  for (int i = 0; i < kLaneColumns; i += kVector) {
    Element of_b[kVector];
    if (aligned && i + kVector <= columns) {
      *reinterpret_cast<uint4*>(of_b) = __ldg(reinterpret_cast<const uint4*>(b + i));
    } else {
#pragma unroll
      for (int j = 0; j < kVector; ++j) of_b[j] = i + j < columns ? b[i + j] : Element(0.f);
    }
#pragma unroll
    for (int j = 0; j < kVector; ++j) sums[i + j] = fmaf(a, float(of_b[j]), sums[i + j]);
  }
}

// A lane's sums of a tile.
struct LaneRow {
  int slot;
  int64_t row, col;  // of C: its row, and the first of its columns
  int64_t in_block;  // row

  __device__ LaneRow(const LaunchArgs& args, const WorkTile& tile, int warp, int lane, int64_t first_col)
      : col(first_col + lane / 16 * kLaneColumns) {
    const int slot_rows = ring_kernel::kTileM / args.slots, at = warp * 16 + lane % 16;
    slot = at / slot_rows;
    row = __ldg(args.slot_row + int64_t(tile.m_tile) * args.slots + slot) + at % slot_rows;
    in_block = row % args.block_m;
  }
};

template <class Element>
__device__ void sum_row(const LaunchArgs& args, const WorkTile& tile, const LaneRow& mine,
                        float (&sums)[kLaneColumns]) {
  const auto* const b = static_cast<const Element*>(args.b) + mine.col;
  const auto* const values = static_cast<const Element*>(args.values);
  const bool aligned = (reinterpret_cast<uintptr_t>(args.b) | args.ldb * sizeof(Element)) % 16 == 0;
#pragma unroll
  for (float& sum : sums) sum = 0.f;
#pragma unroll 1
  for (int e = 0; e < tile.entry_count; ++e) {
    const int64_t at = int64_t(tile.entry_begin) + e;
    const int32_t block = __ldg(args.entry_block + at * args.slots + mine.slot);
    if (!__any_sync(kWarp, block != kNoBlock)) continue;
    if (block != kNoBlock) {
      const int64_t k = __ldg(args.entry_k + at);
      const int count = int(min(int64_t(args.block_k), args.cols - k));
      const Element* const a = values + (int64_t(block) * args.block_m + mine.in_block) * args.block_k;
#pragma unroll 2
      for (int i = 0; i < count; ++i) {
        add_row(float(a[i]), b + (k + i) * args.ldb, args.n - mine.col, aligned, sums);
      }
    }
    // What is NaN stays so.
    bool all_nan = true;
#pragma unroll
    for (const float sum : sums) all_nan = all_nan && isnan(sum);
    if (__all_sync(kWarp, all_nan)) break;
  }
}

// Computes and stores the chunks of the warp's rows that are set in `chunks`.
template <class Element>
__device__ void compute_again(const LaunchArgs& args, const WorkTile& tile,
                              const ring_kernel::Slab<ring_kernel::kAnySlots>& slab, uint32_t chunks) {
#pragma unroll 1
  for (; chunks != 0; chunks &= chunks - 1) {
    const int chunk = tile.n_tile * ring_kernel::kChunks + __ffs(chunks) - 1;
    const LaneRow mine(args, tile, slab.warp, slab.lane, int64_t(chunk) * ring_kernel::kChunkColumns);
    float sums[kLaneColumns];
    sum_row<Element>(args, tile, mine, sums);
    // Each turn moves the sums to the register that the code names: an epilogue for each would be long.
#pragma unroll 1
    for (int i = 0; i < kLaneColumns; ++i) {
      if (mine.row < args.rows && mine.col + i < args.n) write_element(args, mine.row, mine.col + i, sums[0]);
#pragma unroll
      for (int j = 0; j + 1 < kLaneColumns; ++j) sums[j] = sums[j + 1];
    }
  }
}

}  // namespace wgmma_packed_kernel
}  // namespace sparsek::cuda
