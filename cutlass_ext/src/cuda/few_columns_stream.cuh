// SPDX-License-Identifier: Apache-2.0
// For one to three columns: a lane has sums of single blocks, whatever rows they are of; then lanes add up those of the
// elements of C. So short rows leave no lane idle, and long ones keep none busy.
#pragma once

#include "cuda/few_columns_product.cuh"
#include "cuda/few_columns_store.cuh"

namespace sparsek::cuda::few_columns {

// What a warp has in shared memory behind its ring, where sums of blocks are added up in a second step.
template <class Number>
struct BlockSums {
  Number* sums;  // (group, block_m, column_lanes), each word of 33 a gap, so that rows of equal lengths meet many banks
  Number*
      carry;  // (2, block_m, column_lanes): of a row that goes on in the next group; in turns, one read, one written

  __device__ static int at(int i) { return i + (i >> 5); }
};

template <class Element, int kTileM, int kDepth>
__device__ inline void stream_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel, Phases& phases,
                                    char* own) {
  const LaneLayout& lanes = rows.lanes;
  const int lane = threadIdx.x % 32;
  const RowChunk chunk = read_chunk(rows, at);
  Ring<TypeOfA<Element>> ring(args, rows, chunk, phases, own, lane);
  const LanePlace place(lanes, lane, panel, 1, args.n);
  const LaneTile<kTileM> tile = lane_tile<Element, kTileM, 1, kDepth>(args, lanes, place);
  const int entry_lanes = lanes.rows * lanes.shares;
  const int of_block = args.block_m * lanes.column_lanes;  // sums
  using Number = Sum<Element>;
  using Blocks = BlockSums<Number>;
  Blocks blocks;
  blocks.sums = reinterpret_cast<Number*>(own + lanes.ring_bytes);
  blocks.carry = blocks.sums + Blocks::at(lanes.group * of_block) + 1;
  const float alpha = alpha_of(args.epilogue);
  const bool plain = only_scales(args.epilogue, kTypeOf<TypeOfB<Element>>);

  const int chunk_begin = ring.place(chunk.entry_begin);
  int row = chunk.row_begin, begin = chunk_begin;  // of what is left
  bool carried = false;                            // from the group before, to that row
#pragma unroll 1
  for (int group = 0; row < chunk.row_end; ++group) {
    // A block row a lane, and the end of the last one.
    int row_begin = ring.place(__ldg(rows.row_ptr + row + min(lane, rows.block_rows - row)));
    const int end = begin < ring.end ? ring.wait(ring.end) : begin;
#pragma unroll 1
    for (int first = begin; first < end; first += 2 * entry_lanes) {
      const int e = first + place.entry;
      const bool mine[2] = {place.columns > 0 && e < end, place.columns > 0 && e + entry_lanes < end};
      Number sums[2][kTileM][1] = {};
      multiply_two<Element, kTileM, 1, kDepth>(args, ring, tile, e, entry_lanes, mine, sums);
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        add_lanes(lanes.depth_lanes, lanes.column_lanes, sums[u]);
        const int at_block = (e + u * entry_lanes - begin) * of_block + place.column;
#pragma unroll
        for (int t = 0; t < kTileM; ++t) {
          const int in_block = place.row + t * lanes.row_lanes;
          if (mine[u] && place.depth == 0 && in_block < args.block_m) {
            blocks.sums[Blocks::at(at_block + in_block * lanes.column_lanes)] = sums[u][t][0];
          }
        }
      }
    }
    __syncwarp();
    ring.release(args, end, lane);

    bool more = true;  // rows in this group
    const Number* const carry_in = blocks.carry + (group & 1) * of_block;
    Number* const carry_out = blocks.carry + (~group & 1) * of_block;
#pragma unroll 1
    while (more) {
      int count = min(31, chunk.row_end - row);
      const bool last = end == ring.end;
      if (!last) count = min(count, __popc(__ballot_sync(kAllLanes, row_begin < end)));
      const int outputs = count * of_block;
      int shares = 1;  // lanes of an element of C
      while (2 * shares * outputs <= 32) shares *= 2;
      const int share = lane % shares, at_once = 32 / shares;
#pragma unroll 1
      for (int first = 0; first < outputs; first += at_once) {
        const int output = first + lane / shares;
        const int mine = min(output / of_block, count), rest = output % of_block;
        const int from = __shfl_sync(kAllLanes, row_begin, mine);
        const int to = __shfl_sync(kAllLanes, row_begin, min(mine + 1, 31));
        const bool is_one = output < outputs;
        Number sum = 0;
        const int stop = is_one ? (min(to, end) - begin) * of_block + rest : 0, step = shares * of_block;
        int i = (max(from, begin) - begin + share) * of_block + rest;
        for (; i + 3 * step < stop; i += 4 * step) {
          Number loaded[4];
#pragma unroll
          for (int u = 0; u < 4; ++u) loaded[u] = blocks.sums[Blocks::at(i + u * step)];
#pragma unroll
          for (int u = 0; u < 4; ++u) sum += loaded[u];
        }
#pragma unroll 1
        for (; i < stop; i += step) sum += blocks.sums[Blocks::at(i)];
        for (int half = shares / 2; half > 0; half /= 2) sum += __shfl_down_sync(kAllLanes, sum, half);
        if (!is_one || share > 0) continue;
        if (mine == 0 && carried) sum += carry_in[rest];
        const int in_block = rest / lanes.column_lanes;
        const int64_t col = int64_t(panel) * lanes.columns + rest % lanes.column_lanes;
        const int64_t c_row = int64_t(row + mine) * args.block_m + in_block;
        if (to > end && !last) {
          carry_out[rest] = sum;
        } else if (c_row >= args.rows || col >= args.n) {
          continue;
        } else if (from < chunk_begin || to > ring.end) {
          const int64_t part = (int64_t(at) * 2 + (from < chunk_begin ? 0 : 1)) * args.block_m + in_block;
          static_cast<Number*>(rows.sums)[part * lanes.panels * lanes.columns + col] = sum;
        } else {
          const Number one[1] = {sum};
          write_row<TypeOfB<Element>>(args, plain, alpha, c_row, col, 1, one);
        }
      }
      __syncwarp();
      const bool goes_on = !last && __shfl_sync(kAllLanes, row_begin, count) > end;
      row += goes_on ? count - 1 : count;
      carried = goes_on;
      more = !goes_on && row < chunk.row_end && (last || __shfl_sync(kAllLanes, row_begin, count) < end);
      if (more) row_begin = ring.place(__ldg(rows.row_ptr + row + min(lane, rows.block_rows - row)));
    }
    begin = end;
  }
  ring.leave();
}

}  // namespace sparsek::cuda::few_columns
