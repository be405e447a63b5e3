// SPDX-License-Identifier: Apache-2.0
// For four columns and more: the lanes of a warp have some block rows at once, and keep the sums in registers.
#pragma once

#include "cuda/few_columns_product.cuh"
#include "cuda/few_columns_store.cuh"

namespace sparsek::cuda::few_columns {

template <class Element, int kTileM, int kTileN, int kDepth>
__device__ inline void multiply_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel, Phases& phases,
                                      char* own) {
  const LaneLayout& lanes = rows.lanes;
  const int lane = threadIdx.x % 32;
  const RowChunk chunk = read_chunk(rows, at);
  Ring<TypeOfA<Element>> ring(args, rows, chunk, phases, own, lane);

  const LanePlace place(lanes, lane, panel, kTileN, args.n);
  const LaneTile<kTileM> tile = lane_tile<Element, kTileM, kTileN, kDepth>(args, lanes, place);
  const int entry_lane = place.entry, entry_lanes = lanes.rows * lanes.shares;
  const int entry_stride = lanes.row_lanes * lanes.depth_lanes * lanes.column_lanes;
  const float alpha = alpha_of(args.epilogue);
  const bool plain = only_scales(args.epilogue, kTypeOf<TypeOfB<Element>>);
  auto* const parts = static_cast<Sum<Element>*>(rows.sums);

  const int row_of_many = entry_lane / lanes.shares, share_of_many = entry_lane % lanes.shares;
  const int chunk_begin = ring.place(chunk.entry_begin);
  int done = chunk_begin;  // entries before this one
#pragma unroll 1
  for (int row = chunk.row_begin; row < chunk.row_end;) {
    // A block row a lane, and the end of the last one.
    const int row_begin = ring.place(__ldg(rows.row_ptr + row + min(lane, rows.block_rows - row)));
    const int inside = min(max(row_begin, chunk_begin), ring.end);
    int at_once = min(lanes.rows, chunk.row_end - row), shares = lanes.shares;
    if (at_once > 1) {
      const int length = __shfl_down_sync(kAllLanes, inside, 1) - inside;
      const int longest = __reduce_max_sync(kAllLanes, lane < at_once ? length : 0);
      const int all = __shfl_sync(kAllLanes, inside, at_once) - done;
      if (longest * at_once > 2 * all + 4 * lanes.rows * shares) at_once = 1;
    }
    int mine = row_of_many, share = share_of_many;
    if (at_once == 1) {
      shares = entry_lanes;
      mine = entry_lane < entry_lanes ? 0 : 1;
      share = entry_lane;
    }
    const int from = __shfl_sync(kAllLanes, inside, min(mine, 31));
    const int to = __shfl_sync(kAllLanes, inside, min(mine + 1, 31));
    const int end = __shfl_sync(kAllLanes, inside, at_once);
    const bool active = place.columns > 0 && mine < at_once;

    Sum<Element> sums[kTileM][kTileN] = {};
    int e = from + share;
#pragma unroll 1
    while (done < end) {
      done = ring.wait(end);
      e = multiply_entries<Element, kTileM, kTileN, kDepth>(args, ring, tile, e, active ? min(to, done) : 0, shares,
                                                            sums);
      ring.release(args, done, lane);
    }
    add_lanes(shares, entry_stride, sums);
    add_lanes(lanes.depth_lanes, lanes.column_lanes, sums);

    const int begin_of_row = __shfl_sync(kAllLanes, row_begin, min(mine, 31));
    const int end_of_row = __shfl_sync(kAllLanes, row_begin, min(mine + 1, 31));
    if (active && share == 0 && place.depth == 0) {
      const bool begun_before = begin_of_row<chunk_begin, goes_on = end_of_row> ring.end;
#pragma unroll
      for (int t = 0; t < kTileM; ++t) {
        const int in_block = place.row + t * lanes.row_lanes;
        const int64_t c_row = int64_t(row + mine) * args.block_m + in_block;
        if (in_block >= args.block_m || c_row >= args.rows) continue;
        if (begun_before || goes_on) {
          const int64_t part = (int64_t(at) * 2 + (begun_before ? 0 : 1)) * args.block_m + in_block;
#pragma unroll
          for (int j = 0; j < kTileN; ++j) parts[part * lanes.panels * lanes.columns + place.col + j] = sums[t][j];
        } else {
          write_row<TypeOfB<Element>>(args, plain, alpha, c_row, place.col, place.columns, sums[t]);
        }
      }
    }
    row += at_once;
  }
  ring.leave();
}

}  // namespace sparsek::cuda::few_columns
