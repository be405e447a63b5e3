// SPDX-License-Identifier: Apache-2.0
// For small square blocks of fp32 and fp64 by many columns. The warps of a CTA take neighbouring block rows at the same
// time, from one ring of blocks that they share, so that a row of B which several of them meet is read from L2 once for
// all, and a panel of columns is one line of L1 or two. One more warp requests the copies.
#pragma once

#include "cuda/few_columns_ring.cuh"
#include "cuda/few_columns_store.cuh"
#include "cuda/window_tile.cuh"

namespace sparsek::cuda::few_columns {

// The ring of a CTA: values of its groups, the first row of B for each block, barriers, how many groups were requested,
// and the entry before which each warp needs none any more. Entries and groups are counted through all turns of the
// CTA.
struct Window {
  uint32_t values, first_rows, barriers, requested, needed;
  int group, groups, shift, mask;

  __device__ Window(const LaneLayout& lanes, int block_bytes, const char* shared) {
    const int entries = lanes.groups * lanes.group;
    group = lanes.group, groups = lanes.groups, shift = __ffs(group) - 1, mask = entries - 1;
    values = shared_address(shared);
    first_rows = values + entries * block_bytes;
    barriers = first_rows + entries * 4;
    requested = barriers + groups * kBarrierBytes;
    needed = requested + 4;
  }

  // By the first warp; the CTA waits before it uses them.
  __device__ void begin() const {
    const int lane = threadIdx.x;
    make_barriers(barriers, groups);
    store_word(needed + lane * 4, 0);
    if (lane == 0) store_word(requested, 0);
  }
};

__device__ inline void publish(uint32_t to, int value) {
  asm volatile("st.release.cta.shared::cta.u32 [%0], %1;" ::"r"(to), "r"(value) : "memory");
}
__device__ inline int observe(uint32_t from) {
  int value;
  asm volatile("ld.acquire.cta.shared::cta.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
  return value;
}

// A chunk of a CTA, by one panel of columns.
struct WindowTurn {
  RowChunk chunk;
  int at, panel;
  int first, end;  // entries of the plan: of the first group, and behind the last block
  int groups;

  __device__ WindowTurn(const RowChunks& rows, int turn, int shift) {
    at = turn / rows.lanes.panels, panel = turn % rows.lanes.panels;
    chunk = read_chunk(rows, at);
    end = chunk.entry_end < 0 ? ~chunk.entry_end : chunk.entry_end;
    first = chunk.entry_begin & -(1 << shift);
    groups = chunk.entry_begin < end ? (end - first + (1 << shift) - 1) >> shift : 0;
  }
};

// The warp that requests the groups of all turns, as soon as no other needs what lies in their place.
template <class Tile>
__device__ inline void fill_window(const LaunchArgs& args, const RowChunks& rows, const Window& window, char* shared) {
  using Element = typename Tile::Element;
  constexpr int kElements = Tile::kBlock * Tile::kBlock;
  const int lane = threadIdx.x % 32, turns = ctas_of(rows.count, rows.lanes, rows.lanes.panels);
  const char* const values = static_cast<const char*>(args.values);
  const bool aligned = reinterpret_cast<uintptr_t>(values) % 16 == 0;
  int requested = 0, most = window.groups;  // groups: so far; that there is room for
#pragma unroll 1
  for (int turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const WindowTurn now(rows, turn, window.shift);
    const bool in_place = now.chunk.entry_end >= 0;
#pragma unroll 1
    for (int g = 0; g < now.groups; ++g) {
      while (requested >= most) {
        const int needed = lane < Tile::kWarps ? observe(window.needed + lane * 4) : INT32_MAX;
        most = (__reduce_min_sync(kAllLanes, needed) >> window.shift) + window.groups;
        if (requested >= most) __nanosleep(64);
      }
      finish_reads();
      const int begin = now.first + (g << window.shift), count = min(window.group, now.end - begin);
      const int slot = requested & (window.groups - 1), at = slot << window.shift;
      const int bytes = count * Tile::kBlockBytes, bulk = in_place && aligned ? bytes & ~15 : 0;
      if (bulk < bytes) {
        auto* const to = reinterpret_cast<Element*>(shared + at * Tile::kBlockBytes);
#pragma unroll 8
        for (int i = bulk / Tile::kBytes + lane; i < count * kElements; i += 32) {
          const int entry = begin + i / kElements;
          const int64_t block = in_place ? entry : __ldg(args.entry_block + entry);
          to[i] = reinterpret_cast<const Element*>(values + block * Tile::kBlockBytes)[i % kElements];
        }
        finish_reads();
      }
      if (lane == 0) {
        const uint32_t barrier = window.barriers + slot * kBarrierBytes;
        const int row_bytes = (count * 4 + 15) & ~15;
        arrive_and_expect(barrier, bulk + row_bytes);
        copy_bulk(window.first_rows + at * 4, args.entry_k + begin, row_bytes, barrier);
        if (bulk > 0) {
          copy_bulk(window.values + at * Tile::kBlockBytes, values + int64_t(begin) * Tile::kBlockBytes, bulk, barrier);
        }
        publish(window.requested, requested + 1);
      }
      ++requested;
    }
  }
}

// The warps that multiply. kPlain: B's rows are aligned to 16 bytes, N is a multiple of a piece, and no block extends
// beyond K.
template <class Tile, bool kPlain>
__device__ inline void read_window(const LaunchArgs& args, const RowChunks& rows, const Window& window) {
  using Element = typename Tile::Element;
  using Number = Sum<Element>;
  constexpr int kBlock = Tile::kBlock, kPiece = Tile::kPiece, kPieces = Tile::kPieces, kBunch = Tile::kBunch;
  const LaneLayout& lanes = rows.lanes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, turns = ctas_of(rows.count, lanes, lanes.panels);
  const int column = lane & (lanes.column_lanes - 1), entry_lane = lane / lanes.column_lanes;
  const int mine = entry_lane / lanes.shares, share = entry_lane % lanes.shares;
  const int64_t pitch = args.ldb * Tile::kBytes;
  const float alpha = alpha_of(args.epilogue);
  const bool plain = only_scales(args.epilogue, kTypeOf<Element>);
  auto* const parts = static_cast<Number*>(rows.sums);
  int known = 0;  // groups that were requested
  int base = 0;   // groups of the turns before
  int dealt = 0;  // bundles of rows of the turns before, modulo the warps

  // The warp needs no entry before this one any more.
  const auto advance = [&](int entry) {
    finish_reads();
    if (lane == 0) publish(window.needed + warp * 4, entry);
  };

#pragma unroll 1
  for (int turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const WindowTurn now(rows, turn, window.shift);
    const RowChunk& chunk = now.chunk;
    const int offset = (base << window.shift) - now.first;  // from an entry of the plan to its number here
    base += now.groups;
    const int behind = base << window.shift;
    const int64_t col = int64_t(now.panel) * lanes.columns + column * kPiece;
    const char* const b = static_cast<const char*>(args.b) + col * Tile::kBytes;
    Pieces<Tile> pieces;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
      const int piece_begin = p * lanes.column_lanes * kPiece;
      pieces.columns[p] = int(max(int64_t(0), min(int64_t(kPiece), args.n - col - piece_begin)));
      pieces.begin[p] = pieces.columns[p] > 0 ? piece_begin : 0;
    }
    const bool some = chunk.row_begin < chunk.row_end;
    const int begun = some && __ldg(rows.row_ptr + chunk.row_begin) < chunk.entry_begin ? chunk.row_begin : -1;
    const int unfinished = some && __ldg(rows.row_ptr + chunk.row_end) > now.end ? chunk.row_end - 1 : -1;

    // Lane i has the begin of block row `of` + i, or that of the turn to come behind the last one. So has a chunk
    // without blocks: an entry within a group would be waited for, and that group may be nobody's.
    const auto load_begins = [&](int of) {
      if (of >= chunk.row_end || now.groups == 0) return behind;
      const int begin = __ldg(rows.row_ptr + min(of + min(lane, lanes.rows), chunk.row_end));
      return min(max(begin, chunk.entry_begin), now.end) + offset;
    };
    // The warps take turns also from the last rows of a chunk to the first of the next one.
    const int stride = Tile::kWarps * lanes.rows,
              bundles = (chunk.row_end - chunk.row_begin + lanes.rows - 1) / lanes.rows;
    const int first = chunk.row_begin + (warp + Tile::kWarps - dealt) % Tile::kWarps * lanes.rows;
    dealt = (dealt + bundles) % Tile::kWarps;
    int next = load_begins(first);
    int needed = __shfl_sync(kAllLanes, next, 0);
    advance(needed);
#pragma unroll 1
    for (int row = first; row < chunk.row_end; row += stride) {
      const int begins = next;
      next = load_begins(row + stride);
      const int begin = __shfl_sync(kAllLanes, begins, mine), to = __shfl_sync(kAllLanes, begins, mine + 1);
      const int end = __shfl_sync(kAllLanes, begins, lanes.rows);
      int e = begin < to && pieces.columns[0] > 0 ? (begin & -kBunch) + share * kBunch : to;
      Number sums[kBlock][Tile::kColumns] = {};
      int ready = needed >> window.shift;  // groups that were waited for
      for (;;) {
        const int done = min(end, ((needed >> window.shift) + window.groups) << window.shift);
#pragma unroll 1
        for (; ready << window.shift < done; ++ready) {
          while (known <= ready) {
            known = observe(window.requested);
            if (known <= ready) __nanosleep(20);
          }
          wait_for_phase(window.barriers + (ready & (window.groups - 1)) * kBarrierBytes, ready / window.groups & 1);
        }
        const int stop = min(to, done);
#pragma unroll 1
        for (; e < stop; e += lanes.shares * kBunch) {
          const uint32_t place = e & window.mask;
          multiply_bunch<Tile, kPlain>(args, window.values + place * Tile::kBlockBytes, window.first_rows + place * 4,
                                       b, pitch, max(begin - e, 0), to - e, pieces, sums);
        }
        if (done >= end) break;
        needed = done;
        advance(needed);
      }
      needed = __shfl_sync(kAllLanes, next, 0);
      advance(needed);
#pragma unroll 1
      for (int half = lanes.shares / 2; half > 0; half /= 2) {
#pragma unroll
        for (int t = 0; t < kBlock; ++t) {
#pragma unroll
          for (int j = 0; j < Tile::kColumns; ++j) {
            sums[t][j] += __shfl_down_sync(kAllLanes, sums[t][j], half * lanes.column_lanes);
          }
        }
      }
      const int of = row + mine;
      if (share != 0 || of >= chunk.row_end) continue;
      const bool in_parts = of == begun || of == unfinished;
      const int64_t sum_row = (int64_t(now.at) * 2 + (of == begun ? 0 : 1)) * kBlock;
#pragma unroll
      for (int t = 0; t < kBlock; ++t) {
#pragma unroll
        for (int p = 0; p < kPieces; ++p) {
          const int64_t piece_col = col + p * lanes.column_lanes * kPiece, c_row = int64_t(of) * kBlock + t;
          Number piece[kPiece];
#pragma unroll
          for (int j = 0; j < kPiece; ++j) piece[j] = sums[t][p * kPiece + j];
          if (in_parts) {
#pragma unroll
            for (int j = 0; j < kPiece; ++j) {
              parts[(sum_row + t) * lanes.panels * lanes.columns + piece_col + j] = piece[j];
            }
          } else if (c_row < args.rows && pieces.columns[p] > 0) {
            write_row<Element>(args, plain, alpha, c_row, piece_col, pieces.columns[p], piece);
          }
        }
      }
    }
  }
  advance(INT32_MAX);
}

}  // namespace sparsek::cuda::few_columns
