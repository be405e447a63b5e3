// SPDX-License-Identifier: Apache-2.0
// For small square blocks of fp32 and fp64 by many columns. The warps of a CTA take neighbouring block rows at the same
// time, from one ring of blocks that they share, so that a row of B which several of them meet is read from L2 once for
// all, and a panel of columns is one line of L1 or two. One more warp requests the copies.
#pragma once

#include "cuda/few_columns_ring.cuh"
#include "cuda/few_columns_store.cuh"
#include "cuda/window_tile.cuh"

namespace sparsek::cuda::few_columns {

// The ring of a CTA: two barriers of each group, its values, and the first row of B for each block. The first barrier
// is full, which says that the group is there, the second is empty: every warp that multiplies has read what was there.
// Entries and groups are counted through all turns of the CTA.
struct Window {
  uint32_t begin;
  int shift, groups_shift;  // of the entries of a group, and of the groups

  __device__ Window(const LaneLayout& lanes, const char* shared) {
    begin = shared_address(shared);
    shift = __ffs(lanes.group) - 1, groups_shift = __ffs(lanes.groups) - 1;
  }

  __device__ int group() const { return 1 << shift; }
  __device__ int groups() const { return 1 << groups_shift; }
  __device__ int entries() const { return 1 << (shift + groups_shift); }
  __device__ uint32_t values_at() const { return 2 * kBarrierBytes << groups_shift; }  // behind `begin`
  __device__ uint32_t first_rows(int block_bytes) const { return begin + values_at() + entries() * block_bytes; }

  // By the first warp; the CTA waits before it uses them. All lanes of the warp that fills arrive at the first barrier.
  __device__ void make_barriers(int warps) const {
    if (const int lane = threadIdx.x; lane < groups()) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(full(lane)) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(empty(lane)), "r"(warps) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
  }

  // The place of a group, and its barriers.
  __device__ int slot(int number) const { return number & (groups() - 1); }
  __device__ uint32_t full(int number) const { return begin + slot(number) * (2 * kBarrierBytes); }
  __device__ uint32_t empty(int number) const { return full(number) + kBarrierBytes; }

  // The group is there. Its place must have been empty for it.
  __device__ void wait_until_full(int number) const { wait_for_phase(full(number), number >> groups_shift & 1); }
  // The group that was in its place before has been read by all; there was none in the first round.
  __device__ void wait_until_empty(int number) const { wait_for_phase(empty(number), number >> groups_shift & 1 ^ 1); }
};

// How far a warp that multiplies has come in the ring. It gives back all groups in their order, also those in which it
// has no block. Whatever it waits for, it has given back the group before in that place, which others wait for.
class WindowReader {
 public:
  __device__ explicit WindowReader(const Window& window) : window_(window) {}

  // Groups before this one are there. That the place of the last one was empty says that the groups before these, in
  // their places, were there and were read: else a barrier would still be in the phase before.
  __device__ void wait(int end) {
    if (full_ >= end) return;
    window_.wait_until_empty(end - 1);
#pragma unroll 1
    for (; full_ < end; ++full_) window_.wait_until_full(full_);
  }

  // The warp needs no group before this one any more, and each lane gives back one of those. A lane must not arrive at
  // a barrier while that is in a phase before, so the warp waits for the last one that it skips, as far as the ring
  // goes: places are filled in their order.
  __device__ void release(int end) {
    if (released_ >= end) return;
    finish_reads();
#pragma unroll 1
    while (released_ < end) {
      const int to = min(end, released_ + window_.groups());
      if (full_ < to) {
        full_ = to - 1;
        wait(to);
        __syncwarp();  // the phase that a lane waits for could end twice
      }
      if (const int number = released_ + threadIdx.x % 32; number < to) arrive_in_cluster<1>(window_.empty(number));
      released_ = to;
    }
  }

  __device__ int released() const { return released_; }

 private:
  const Window& window_;
  int full_ = 0, released_ = 0;
};

__device__ inline void arrive(uint32_t barrier, int times) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(times) : "memory");
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
  // A plan may have fewer blocks by now than it was made for.
  const int64_t value_bytes = int64_t(__ldg(rows.row_ptr + rows.block_rows)) * Tile::kBlockBytes;
  int number = 0;  // of the group, through all turns
#pragma unroll 1
  for (int turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const WindowTurn now(rows, turn, window.shift);
    const bool in_place = now.chunk.entry_end >= 0;
#pragma unroll 1
    for (int g = 0; g < now.groups; ++g, ++number) {
      window.wait_until_empty(number);
      __syncwarp();  // no lane is left behind by more than a phase
      const int begin = now.first + (g << window.shift), count = min(window.group(), now.end - begin);
      const int at = window.slot(number) << window.shift;  // the first entry of its place
      const int bytes = (count * Tile::kBlockBytes + 15) & ~15, row_bytes = (count * 4 + 15) & ~15;
      const int64_t from = int64_t(begin) * Tile::kBlockBytes;
      const uint32_t barrier = window.full(number);
      const bool by_bulk = in_place && aligned && from + bytes <= value_bytes;
      if (!by_bulk) {
        auto* const to = reinterpret_cast<Element*>(shared + window.values_at() + at * Tile::kBlockBytes);
#pragma unroll 8
        for (int i = lane; i < count * kElements; i += 32) {
          const int entry = begin + i / kElements;
          const int64_t block = in_place ? entry : __ldg(args.entry_block + entry);
          to[i] = reinterpret_cast<const Element*>(values + block * Tile::kBlockBytes)[i % kElements];
        }
        finish_reads();  // a later copy to this place does not overtake what was written
        if (lane > 0) arrive(barrier, 1);
      }
      if (lane == 0) {
        if (by_bulk) arrive(barrier, 31);  // for the other lanes
        arrive_and_expect(barrier, (by_bulk ? bytes : 0) + row_bytes);
        copy_bulk(window.first_rows(Tile::kBlockBytes) + at * 4, args.entry_k + begin, row_bytes, barrier);
        if (by_bulk) {
          copy_bulk(window.begin + window.values_at() + at * Tile::kBlockBytes, values + from, bytes, barrier);
        }
      }
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
  const uint32_t values = window.begin + window.values_at(), first_rows = window.first_rows(Tile::kBlockBytes);
  WindowReader reader(window);
  int base = 0;   // groups of the turns before
  int dealt = 0;  // bundles of rows of the turns before, modulo the warps

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
    // Up to the group in which the next row of the warp begins.
    const auto release = [&] { reader.release(__shfl_sync(kAllLanes, next, 0) >> window.shift); };
    release();
#pragma unroll 1
    for (int row = first; row < chunk.row_end; row += stride) {
      const int begins = next;
      next = load_begins(row + stride);
      const int begin = __shfl_sync(kAllLanes, begins, mine), to = __shfl_sync(kAllLanes, begins, mine + 1);
      const int end = __shfl_sync(kAllLanes, begins, lanes.rows);
      int e = begin < to && pieces.columns[0] > 0 ? (begin & -kBunch) + share * kBunch : to;
      Number sums[kBlock][Tile::kColumns] = {};
      for (;;) {
        const int room = reader.released() + window.groups(), done = min(end, room << window.shift);
        reader.wait((done + window.group() - 1) >> window.shift);
        const int stop = min(to, done);
#pragma unroll 1
        for (; e < stop; e += lanes.shares * kBunch) {
          const uint32_t place = e & (window.entries() - 1);
          multiply_bunch<Tile, kPlain>(args, values + place * Tile::kBlockBytes, first_rows + place * 4, b, pitch,
                                       max(begin - e, 0), to - e, pieces, sums);
        }
        if (done >= end) break;
        reader.release(room);
      }
      release();
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
  reader.release(base);  // no copy is under way when the CTA ends
}

}  // namespace sparsek::cuda::few_columns
