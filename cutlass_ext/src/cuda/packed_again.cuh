// SPDX-License-Identifier: Apache-2.0
// What a warp of kernel family "wgmma_packed" does with sums that are NaN: it looks whether NaN in B explains them, and
// computes the others again, eight groups of eight columns at a time, from the blocks that exist alone.
//
// No zero of an absent block takes part: a list of entries is multiplied for the rows of those slots only that have a
// block in all of them. There is a list for each block row among the warp's 16 rows, and one of entries in which all
// rows have a block that have any; so B is not read for each slot where slots have the same columns. The tensor cores
// compute all rows, and the sums of the others are put back. Inf and NaN of A and B then need no rule of their own.
//
// The product is that of the transposes, mma m16n8k16 with columns of B as its 16 rows, and rows of A as its eight
// columns: half of them are used where slots have four rows. Neither the order of columns of C nor that of k matters,
// so lane 4 r + c loads what it needs of B without shared memory: 16 bytes of group r's columns, from rows 4 c to
// 4 c + 3 of 16. Word j of these has columns 2 j and 2 j + 1, which are rows r and r + 8 of instruction j. The lane's
// four elements of A lie together.
#pragma once

#include <cstdint>
#include <type_traits>

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

constexpr int kPassGroups = 8;               // of 8 columns, that are computed together
constexpr int kHalves = 2;                   // 8 rows of a warp's 16
constexpr int kPairs = kEight / 2;           // of columns of a group
constexpr int kListColumns = 3 * kPackUnit;  // of A that are multiplied at once; there are no registers for 64
constexpr int kLists = kMostSlots + 1;

// An entry in a list. column: of the packed A of the row group, in which a stage has kPackColumns.
struct Listed {
  int32_t k, column;
};

// What a list holds at most: less than is multiplied at once, of an entry for each column, and 32 entries more.
constexpr int kListLength = kListColumns + 32;

static_assert(kLists * kListLength * sizeof(Listed) <= sizeof(StoreBuffers));
static_assert(16 * kPassGroups * kEight * sizeof(float) <= sizeof(StoreBuffers));

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

// A warp's sums of up to eight groups of 8 columns of C. sums[h][j]: of rows 8 h + 2 c and 8 h + 2 c + 1 of the warp's,
// in column 2 j of group r, then in column 2 j + 1.
template <class Element>
class GroupsAgain {
 public:
  using Sums = float[kHalves][kPairs][4];

  // groups: the first eight that are set.
  __device__ GroupsAgain(const LaunchArgs& args, const PackSizes& sizes, const PackMemory& packed, const WorkTile& tile,
                         const ring_kernel::Slab<ring_kernel::kAnySlots>& slab, StoreBuffers& buffers, uint32_t used,
                         uint32_t groups)
      : args_(args),
        sizes_(sizes),
        tile_(tile),
        slots_(args, slab.warp),
        lane_(slab.lane),
        used_(used),
        buffers_(buffers),
        inverse_((kInverseOfOne + sizes.block_k - 1) / sizes.block_k) {
    const int r = lane_ / 4;
#pragma unroll
    for (int i = 0; i < kPassGroups - 1; ++i) {
      if (i < r) groups &= groups - 1;
    }
    col_ = int64_t(tile.n_tile) * ring_kernel::kTileN + (groups != 0 ? __ffs(groups) - 1 : 0) * kEight;
    columns_ = groups != 0 ? int(min(int64_t(kEight), args.n - col_)) : 0;
    a_ = packed.tiles + tile.m_tile * sizes.stages_of_group * kPackStageBytes + (slab.warp * 16 + r) * kPackRowBytes;
    // Slots of one block row have blocks in the same entries.
    int64_t block_row = -1 - lane_;
    if (lane_ < slots_.count) {
      block_row = __ldg(args.slot_row + int64_t(tile.m_tile) * args.slots + slots_.first + lane_) / args.block_m;
    }
    const uint32_t same = __match_any_sync(kWarp, static_cast<unsigned long long>(block_row));
    if (lane_ == kMostSlots) {
      members_ = used;
    } else if (__ffs(same) - 1 == lane_) {
      members_ = same & used;
    }
  }

  __device__ void sum(Sums& sums) {
#pragma unroll
    for (int i = 0; i < kHalves * kPairs * 4; ++i) sums[i / 16][i / 4 % 4][i % 4] = 0.f;
    const bool whole = __all_sync(kWarp, columns_ % kEight == 0), fours = sizes_.block_k % 4 == 0;
    const int most = max(1, kListColumns / sizes_.block_k);  // entries that are multiplied at once
    Entries next = entries(0);
#pragma unroll 1
    for (int first = 0; first < tile_.entry_count; first += 32) {
      const Entries now = next;
      next = entries(first + 32);
      append(now, first + lane_);
      const int least = first + 32 < tile_.entry_count ? most : 1;
#pragma unroll 1
      for (int list = 0; list < kLists; ++list) {
        const int count = __shfl_sync(kWarp, count_, list);
        if (count < least) continue;
        const uint32_t members = __shfl_sync(kWarp, members_, list);
        const Listed* const listed = begin_of(list);
        int from = 0;
#pragma unroll 1
        for (; count - from >= least; from += most) {
          const int columns = min(most, count - from) * sizes_.block_k;
          if (!whole) {
            add<false, false>(listed + from, columns, members, sums);
          } else if (fours) {
            add<true, true>(listed + from, columns, members, sums);
          } else {
            add<false, true>(listed + from, columns, members, sums);
          }
        }
        keep_rest(list, count, from);
        if (all_nan(sums)) return;
      }
    }
  }

  // Through shared memory, so that a warp writes neighbouring columns, and has one epilogue.
  __device__ void store(const ring_kernel::Slab<ring_kernel::kAnySlots>& slab, const Sums& sums) {
    constexpr int kColumns = kPassGroups * kEight;
    auto* const buffer = reinterpret_cast<float*>(buffers_);
    const int r = lane_ / 4, c = lane_ % 4;
    __syncwarp();  // the lists have been read
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        auto* const to = reinterpret_cast<float4*>(buffer + (h * 8 + c * 2 + e) * kColumns + r * kEight);
        to[0] = {sums[h][0][e], sums[h][0][2 + e], sums[h][1][e], sums[h][1][2 + e]};
        to[1] = {sums[h][2][e], sums[h][2][2 + e], sums[h][3][e], sums[h][3][2 + e]};
      }
    }
    __syncwarp();
    const uint32_t slot_rows = slots_.rows, of_lane = slab.warp * 16 + lane_ % 16;
    const uint32_t row_of_lane =
        uint32_t(__ldg(args_.slot_row + int64_t(tile_.m_tile) * args_.slots + of_lane / slot_rows)) +
        of_lane % slot_rows;
#pragma unroll 1
    for (int i = 0; i < 16 * kColumns; i += 32) {
      const int at = i % kColumns + lane_;
      const int64_t row = __shfl_sync(kWarp, row_of_lane, i / kColumns);
      const int64_t col = __shfl_sync(kWarp, col_, at / kEight * 4) + at % kEight;
      const int columns = __shfl_sync(kWarp, columns_, at / kEight * 4);
      if (row < args_.rows && at % kEight < columns) write_element(args_, row, col, buffer[i + lane_]);
    }
    __syncwarp();
  }

 private:
  static constexpr int kPackRowBytes = kPackColumns * 2;
  static constexpr uint32_t kInverseOfOne = 1u << 16;

  // An entry for each lane: its row of B, and its blocks in the warp's slots. They are loaded an iteration ahead.
  struct Entries {
    int32_t k, block[kMostSlots];
  };
  __device__ Entries entries(int first) const {
    const int64_t at = int64_t(tile_.entry_begin) + first + lane_;
    Entries of;
#pragma unroll
    for (int t = 0; t < kMostSlots; ++t) of.block[t] = kNoBlock;
    of.k = 0;
    if (first + lane_ < tile_.entry_count) {
      of.k = __ldg(args_.entry_k + at);
#pragma unroll
      for (int t = 0; t < kMostSlots; ++t) {
        if (t < slots_.count) of.block[t] = __ldg(args_.entry_block + at * args_.slots + slots_.first + t);
      }
    }
    return of;
  }

  __device__ Listed* begin_of(int list) const { return reinterpret_cast<Listed*>(buffers_) + list * kListLength; }

  // entry: of the tile.
  __device__ void append(const Entries& of, int entry) {
    uint32_t has = 0;
#pragma unroll
    for (int t = 0; t < kMostSlots; ++t) has |= uint32_t(of.block[t] != kNoBlock) << t;
    const Listed listed = {of.k, entry / sizes_.entries * kPackColumns + entry % sizes_.entries * sizes_.block_k};
    const bool of_all = has == used_;
#pragma unroll
    for (int i = 0; i < kLists; ++i) {
      const bool of_used_list = __shfl_sync(kWarp, members_, i) != 0;
      const bool appends = of_used_list && (i == kMostSlots ? of_all : !of_all && (has >> i & 1) != 0);
      const uint32_t all = __ballot_sync(kWarp, appends);
      const int count = __shfl_sync(kWarp, count_, i);
      if (appends) begin_of(i)[count + __popc(all & ((1u << lane_) - 1))] = listed;
      if (lane_ == i) count_ += __popc(all);
    }
    __syncwarp();
  }

  // Moves what is left of a list, from entry `from` on, to its begin. It is less than 32 entries: what has been
  // multiplied was at least as much as the list had before the last 32.
  __device__ void keep_rest(int list, int count, int from) {
    const int left = max(0, count - from);
    Listed moved = {};
    if (lane_ < left) moved = begin_of(list)[from + lane_];
    __syncwarp();
    if (lane_ < left) begin_of(list)[lane_] = moved;
    if (lane_ == list) count_ = left;
    __syncwarp();
  }

  // Adds the products of the entries from `listed` on, which have `columns` columns, for the rows of slots `members`.
  // Fours: the width of blocks is a multiple of 4. Whole: as of read_eight.
  template <bool Fours, bool Whole>
  __device__ void add(const Listed* listed, int columns, uint32_t members, Sums& sums) const {
    constexpr int kUnitsTogether = !Whole ? 1 : kListColumns / kPackUnit;
    const int r = lane_ / 4, c = lane_ % 4;
    const auto* const of_b = static_cast<const uint16_t*>(args_.b) + col_;
#pragma unroll 1
    for (int first = 0; first < columns; first += kUnitsTogether * kPackUnit) {
      uint4 b[kUnitsTogether][4];
      uint2 a[kUnitsTogether][kHalves];
#pragma unroll
      for (int u = 0; u < kUnitsTogether; ++u) {
        const int at = first + u * kPackUnit + c * 4;  // the first of the lane's four columns of A
        if constexpr (Fours) {
          const Place place = place_of(listed, at, columns);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            b[u][i] = read_eight<Whole>(of_b + int64_t(place.k + i) * args_.ldb, i < place.exist ? columns_ : 0);
          }
#pragma unroll
          for (int h = 0; h < kHalves; ++h) {
            a[u][h] = {};
            if (place.exist > 0 && has_row(members, h, r)) {
              a[u][h] = __ldg(reinterpret_cast<const uint2*>(element_of_a(place.column, h)));
            }
            if (place.exist < 4) a[u][h] = first_of(a[u][h], place.exist);
          }
        } else {
          uint32_t words[kHalves][2] = {};
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const Place place = place_of(listed, at + i, columns);
            b[u][i] = read_eight<Whole>(of_b + int64_t(place.k) * args_.ldb, place.exist > 0 ? columns_ : 0);
#pragma unroll
            for (int h = 0; h < kHalves; ++h) {
              if (place.exist > 0 && has_row(members, h, r)) {
                words[h][i / 2] |= uint32_t(__ldg(reinterpret_cast<const uint16_t*>(element_of_a(place.column, h))))
                                   << i % 2 * 16;
              }
            }
          }
#pragma unroll
          for (int h = 0; h < kHalves; ++h) a[u][h] = {words[h][0], words[h][1]};
        }
      }
      __syncwarp();
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        const bool any = has_row(members, h, 0) || has_row(members, h, 4);
        if (!any) continue;
        float with[kPairs][4];
#pragma unroll
        for (int i = 0; i < kPairs * 4; ++i) with[i / 4][i % 4] = sums[h][i / 4][i % 4];
#pragma unroll
        for (int u = 0; u < kUnitsTogether; ++u) {
#pragma unroll
          for (int j = 0; j < kPairs; ++j) {
            const uint32_t of[4] = {word_of(b[u][0], j), word_of(b[u][1], j), word_of(b[u][2], j), word_of(b[u][3], j)};
            constexpr uint32_t kLow = 0x5410, kHigh = 0x7632;  // halves of two words
            mma_m16n8k16<Element>(with[j],
                                  {__byte_perm(of[0], of[1], kLow), __byte_perm(of[0], of[1], kHigh),
                                   __byte_perm(of[2], of[3], kLow), __byte_perm(of[2], of[3], kHigh)},
                                  a[u][h].x, a[u][h].y);
          }
        }
        const bool adds = has_row(members, h, c * 2);
#pragma unroll
        for (int i = 0; i < kPairs * 4; ++i) {
          float& to = sums[h][i / 4][i % 4];
          to = adds ? with[i / 4][i % 4] : to;
        }
      }
    }
  }

  // A column of those that are multiplied at once. exist: how many rows of B there are from row k on, not more than 4;
  // 0 if it is none of the entries' columns.
  struct Place {
    int32_t k, column;
    int exist;
  };
  __device__ Place place_of(const Listed* listed, int at, int columns) const {
    // Exact, since at (inverse_ block_k - kInverseOfOne) < at block_k <= kPackColumns^2 < kInverseOfOne.
    static_assert(kPackColumns * kPackColumns < kInverseOfOne);
    if (at >= columns) return {0, 0, 0};
    const int i = int(at * inverse_ / kInverseOfOne), in_block = at - i * sizes_.block_k;
    const Listed of = listed[i];
    const int32_t k = of.k + in_block;
    return {k, of.column + in_block, int(max(int64_t(0), min(int64_t(4), args_.cols - k)))};
  }

  // Whether row `row` of half h belongs to a slot of `members`.
  __device__ bool has_row(uint32_t members, int h, int row) const {
    return (members >> slots_.of_row(h * 8 + row) & 1) != 0;
  }

  // Of the lane's row r of half h.
  __device__ const char* element_of_a(int32_t column, int h) const {
    const int vector = column % kPackColumns / kEight ^ lane_ / 4;
    return a_ + int64_t(column / kPackColumns) * kPackStageBytes + h * 8 * kPackRowBytes + vector * 16 +
           column % kEight * 2;
  }

  __device__ static uint2 first_of(uint2 four, int count) {
    const uint64_t kept = (uint64_t{1} << count * 16) - 1;  // count < 4
    return {four.x & uint32_t(kept), four.y & uint32_t(kept >> 32)};
  }

  // Whether nothing can change the sums any more: all in rows with blocks are NaN.
  __device__ bool all_nan(const Sums& sums) const {
    float least = NAN;  // fminf is NaN only where both are
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
      const bool wanted = has_row(used_, h, lane_ % 4 * 2);
#pragma unroll
      for (int i = 0; i < kPairs * 4; ++i) {
        const int col = i / 4 * 2 + i % 4 / 2;
        if (wanted && col < columns_) least = fminf(least, sums[h][i / 4][i % 4]);
      }
    }
    return __all_sync(kWarp, isnan(least));
  }

  const LaunchArgs& args_;
  const PackSizes& sizes_;
  const WorkTile& tile_;
  const SlotsOfWarp slots_;
  const int lane_;
  const uint32_t used_;
  StoreBuffers& buffers_;   // the lists; at the end the sums
  const uint32_t inverse_;  // of the width of blocks, times kInverseOfOne, rounded up
  const char* a_;           // the lane's row r in the first stage
  int64_t col_;             // of C: the first of group r
  int columns_;             // of group r
  // Of list `lane`: how many entries it has, and the slots for which they are multiplied, none if it is not used.
  int count_ = 0;
  uint32_t members_ = 0;
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
  while (groups != 0) {
    GroupsAgain<Element> of(args, sizes, packed, tile, slab, buffers, used, groups);
    typename GroupsAgain<Element>::Sums sums;
    of.sum(sums);
    of.store(slab, sums);
#pragma unroll
    for (int i = 0; i < kPassGroups; ++i) groups &= groups - 1;
  }
}

}  // namespace wgmma_packed_kernel
}  // namespace sparsek::cuda
