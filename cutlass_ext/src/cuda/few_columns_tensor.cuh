// SPDX-License-Identifier: Apache-2.0
// For bf16 and fp16 and blocks whose sides are multiples of 8: tensor cores, without shared memory. A warp computes one
// block row after the other, by steps of kGroups times four units; a unit is 8 columns of a block. It multiplies the
// transposed, C^T = B^T A^T, since units are then as the second operand of m16n8k16 wants them: lane (g, t) reads the 8
// values of row g of unit t by one load. The values of the next step are on their way meanwhile.
#pragma once

#include "cuda/few_columns_ring.cuh"
#include "cuda/few_columns_store.cuh"
#include "cuda/mma_sync.cuh"

namespace sparsek::cuda::few_columns {

// kColumns consecutive elements of a row of B, two in a word.
template <int kColumns>
struct Halves {
  uint32_t words[(kColumns + 1) / 2];
};

template <int kColumns>
__device__ inline Halves<kColumns> load_halves(const char* b, bool wide, int columns) {
  Halves<kColumns> row = {};
  if (kColumns == 1 || !wide) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      if (kColumns == 1 || j < columns) {
        row.words[j / 2] |= uint32_t(__ldg(reinterpret_cast<const uint16_t*>(b) + j)) << (j % 2 * 16);
      }
    }
  } else if constexpr (kColumns == 2) {
    row.words[0] = __ldg(reinterpret_cast<const uint32_t*>(b));
  } else if constexpr (kColumns == 4) {
    const uint2 v = __ldg(reinterpret_cast<const uint2*>(b));
    row.words[0] = v.x, row.words[1] = v.y;
  } else if constexpr (kColumns == 8) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(b));
    row.words[0] = v.x, row.words[1] = v.y, row.words[2] = v.z, row.words[3] = v.w;
  }
  return row;
}

// What is read once.
__device__ inline uint4 load_once(const void* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

// The same from an address that is aligned to 2 bytes alone.
__device__ inline uint4 load_unaligned(const void* from) {
  const auto* const halves = static_cast<const uint16_t*>(from);
  const auto word = [&](int i) { return uint32_t(__ldg(halves + 2 * i)) | uint32_t(__ldg(halves + 2 * i + 1)) << 16; };
  return make_uint4(word(0), word(1), word(2), word(3));
}

// The units of a step that a lane loads: of A, and which rows of B they meet.
template <int kRowTiles, int kGroups>
struct Units {
  uint4 a[kGroups][kRowTiles];
  int k[kGroups];  // -1: none
  int done;        // the block row that ends with this step, or -1
};

// The block rows of a warp, every stride-th, and of their blocks those from entry_begin on before entry_end. Other
// chunks have parts of `begun` and `unfinished`; -1: of none.
struct TensorRows {
  int begin, end, stride, entry_begin, entry_end, begun, unfinished;
  bool in_place;
};

// Those of chunk `at`. Where a CTA's chunks end between rows, its warps may take their rows in turns instead, so that
// neighbouring rows are computed at about the same time: what they both read of B is in L1 then.
template <int kWarps, bool kInTurns>
__device__ inline TensorRows tensor_rows(const RowChunks& rows, int at, int lane) {
  const RowChunk chunk = read_chunk(rows, at);
  const auto end_of = [](const RowChunk& of) { return of.entry_end < 0 ? ~of.entry_end : of.entry_end; };
  if constexpr (kInTurns) {
    const int warp = at % kWarps, of_cta = min(kWarps, rows.count - (at - warp));
    const RowChunk other = read_chunk(rows, at - warp + min(lane, of_cta - 1));
    const bool is_whole = __ldg(rows.row_ptr + other.row_begin) == other.entry_begin &&
                          __ldg(rows.row_ptr + other.row_end) == end_of(other);
    if (__all_sync(kAllLanes, is_whole)) {
      const int begin = __shfl_sync(kAllLanes, other.row_begin, 0);
      const int end = __shfl_sync(kAllLanes, other.row_end, of_cta - 1);
      return {begin + warp, end, of_cta, 0, INT32_MAX, -1, -1, chunk.entry_end >= 0};
    }
  }
  const bool some = chunk.row_begin < chunk.row_end;
  const int begun = some && __ldg(rows.row_ptr + chunk.row_begin) < chunk.entry_begin ? chunk.row_begin : -1;
  const int unfinished = some && __ldg(rows.row_ptr + chunk.row_end) > end_of(chunk) ? chunk.row_end - 1 : -1;
  return {chunk.row_begin, chunk.row_end, 1, chunk.entry_begin, end_of(chunk), begun, unfinished, chunk.entry_end >= 0};
}

// kVector: the plan is for one column, whose elements are next to each other and aligned to 16 bytes. kPlain: B's rows
// are aligned for the columns of a lane, which are a divisor of N, and no block extends beyond K.
template <class Element, int kRowTiles, int kColumns, int kGroups, int kWarps, bool kVector, bool kPlain>
__device__ inline void tensor_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel) {
  constexpr int kTiles = (kColumns + 1) / 2;  // of 16 columns
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const TensorRows mine = tensor_rows<kWarps, (kColumns > 2)>(rows, at, lane);
  if (mine.begin >= mine.end) return;
  const bool in_place = mine.in_place;
  const int units = args.block_k / 8;
  const int four_entries = 4 / units, four_units = 4 % units;  // from a unit to the fourth behind it
  const uint32_t block_bytes = args.block_m * args.block_k * 2, row_bytes = args.block_k * 2;
  const int64_t col = int64_t(panel) * rows.lanes.columns + (kVector ? 0 : g * kColumns);
  const int columns = int(max(int64_t(0), min(int64_t(kColumns), args.n - col)));
  const uint32_t pitch = uint32_t(args.ldb) * 2;
  const char* const b = static_cast<const char*>(args.b) + col * 2;
  const bool wide = kPlain || (columns == kColumns && args.ldb % kColumns == 0 &&
                               reinterpret_cast<uintptr_t>(args.b) % (kColumns * 2) == 0);
  const bool reads_b = kVector ? g < 2 : columns > 0, writes_c = kVector ? t == 0 : columns > 0;
  const char* const values = static_cast<const char*>(args.values) + g * row_bytes;
  const bool aligned = reinterpret_cast<uintptr_t>(args.values) % 16 == 0;
  const float alpha = alpha_of(args.epilogue);
  const bool plain = only_scales(args.epilogue, kTypeOf<Element>);
  auto* const parts = static_cast<float*>(rows.sums);

  // Lanes 2 i and 2 i + 1 have the begin and the end of the i-th row of a batch.
  constexpr int kBatch = 16;
  int row = mine.begin, in_batch = 0;
  const auto load_ends = [&] {
    const int end_of = min(row + (lane >> 1) * mine.stride + (lane & 1), rows.block_rows);
    return min(max(__ldg(rows.row_ptr + end_of), mine.entry_begin), mine.entry_end);
  };
  int ends = load_ends();
  // Of the step to come: its first unit, and the lane's.
  int first = __shfl_sync(kAllLanes, ends, 0), end = __shfl_sync(kAllLanes, ends, 1), first_unit = 0;
  const int lane_entry = t / units, lane_unit = t % units;

  const auto request = [&](Units<kRowTiles, kGroups>& to) __attribute__((always_inline)) {
    int entry = first + lane_entry, unit = first_unit + lane_unit;
    if (unit >= units) unit -= units, ++entry;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const bool is_one = entry < end;
      to.k[i] = -1;
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) to.a[i][r] = make_uint4(0, 0, 0, 0);
      if (is_one) {
        to.k[i] = __ldg(args.entry_k + entry) + unit * 8;
        const int block = in_place ? entry : __ldg(args.entry_block + entry);
        const char* const from = values + uint64_t(uint32_t(block)) * block_bytes + unit * 16;
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const char* const eight = from + r * 8 * row_bytes;
          to.a[i][r] = kPlain || aligned ? load_once(eight) : load_unaligned(eight);
        }
      }
      entry += four_entries, unit += four_units;
      if (unit >= units) unit -= units, ++entry;
    }
    // To the first unit behind these.
    first += kGroups * 4 / units, first_unit += kGroups * 4 % units;
    if (first_unit >= units) first_unit -= units, ++first;
    to.done = -1;
    if (first >= end && row < mine.end) {
      to.done = row;
      row += mine.stride;
      if (row < mine.end) {
        if (++in_batch == kBatch) {
          ends = load_ends();
          in_batch = 0;
        }
        first = __shfl_sync(kAllLanes, ends, 2 * in_batch), first_unit = 0;
        end = __shfl_sync(kAllLanes, ends, 2 * in_batch + 1);
      }
    }
  };
  float sums[kRowTiles][kTiles][4] = {};
  const auto multiply = [&](const Units<kRowTiles, kGroups>& now) __attribute__((always_inline)) {

#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const bool is_one = reads_b && now.k[i] >= 0;
      const char* const from = b + uint64_t(uint32_t(now.k[i])) * pitch;
      const int count = kPlain ? 8 : int(min(int64_t(8), args.cols - now.k[i]));
      if constexpr (kVector) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (is_one) x = __ldg(reinterpret_cast<const uint4*>(from));
        // Of a lane's values, the first and third pair are row g of the first operand, the others row g + 8. They meet
        // their elements of B in the first and in the second column of the second operand.
        const uint32_t b0 = g == 0 ? x.x : x.y, b1 = g == 0 ? x.z : x.w;
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const uint32_t a[4] = {now.a[i][r].x, now.a[i][r].y, now.a[i][r].z, now.a[i][r].w};
          mma_m16n8k16<Element>(sums[r][0], a, b0, b1);
        }
      } else {
        Halves<kColumns> b_rows[8] = {};
        if (is_one) {
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            if (kPlain || j < count) b_rows[j] = load_halves<kColumns>(from + j * uint64_t(pitch), wide, columns);
          }
        }
#pragma unroll
        for (int q = 0; q < 2; ++q) {
#pragma unroll
          for (int m = 0; m < kTiles; ++m) {
            uint32_t words[4] = {};
            words[0] = __byte_perm(b_rows[4 * q].words[m], b_rows[4 * q + 1].words[m], 0x5410);
            words[2] = __byte_perm(b_rows[4 * q + 2].words[m], b_rows[4 * q + 3].words[m], 0x5410);
            if constexpr (kColumns > 1) {
              words[1] = __byte_perm(b_rows[4 * q].words[m], b_rows[4 * q + 1].words[m], 0x7632);
              words[3] = __byte_perm(b_rows[4 * q + 2].words[m], b_rows[4 * q + 3].words[m], 0x7632);
            }
#pragma unroll
            for (int r = 0; r < kRowTiles; ++r) {
              const uint4& a = now.a[i][r];
              mma_m16n8k16<Element>(sums[r][m], words, q == 0 ? a.x : a.z, q == 0 ? a.y : a.w);
            }
          }
        }
      }
    }
    const int done = now.done;
    if (done < 0) return;

    if (writes_c) {
#pragma unroll
      for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
        for (int i = 0; i < (kVector ? 1 : 2); ++i) {
          const int in_block = r * 8 + (kVector ? g : 2 * t + i);
          const int64_t c_row = int64_t(done) * args.block_m + in_block;
          float of_row[kColumns];
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            of_row[j] = kVector ? sums[r][0][0] + sums[r][0][3] : sums[r][j / 2][j % 2 * 2 + i];
          }
          if (done == mine.begun || done == mine.unfinished) {
            const int64_t sum_row = (int64_t(at) * 2 + (done == mine.begun ? 0 : 1)) * args.block_m + in_block;
#pragma unroll
            for (int j = 0; j < kColumns; ++j) {
              parts[sum_row * rows.lanes.panels * rows.lanes.columns + col + j] = of_row[j];
            }
          } else if (c_row < args.rows) {
            write_row<Element>(args, plain, alpha, c_row, col, columns, of_row);
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[r][m][j] = 0.f;
      }
    }
  };
  const int last = mine.begin + (mine.end - 1 - mine.begin) / mine.stride * mine.stride;
  // In turns, so that no loop moves what is on its way from register to register.
  Units<kRowTiles, kGroups> even, odd;
  request(even);
#pragma unroll 1
  for (;;) {
    request(odd);
    multiply(even);
    if (even.done == last) return;
    request(even);
    multiply(odd);
    if (odd.done == last) return;
  }
}

}  // namespace sparsek::cuda::few_columns
