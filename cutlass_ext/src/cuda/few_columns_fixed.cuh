// SPDX-License-Identifier: Apache-2.0
// For small blocks of sizes that are known when this is compiled. A warp has some block rows at once, and each of them
// some lanes, which have a block or some rows of it each, and keep their sums in registers.
#pragma once

#include "cuda/few_columns_pipe.cuh"
#include "cuda/few_columns_store.cuh"

namespace sparsek::cuda::few_columns {

// The largest power of two that divides bytes, 16 at most.
constexpr int alignment_of(int bytes) {
  int align = 16;
  while (bytes % align != 0) align /= 2;
  return align;
}

// kCount consecutive elements in shared memory, by loads of kAlign bytes.
template <class Element, int kAlign, int kCount>
__device__ inline void load_values(uint32_t from, Sum<Element> (&to)[kCount]) {
  constexpr int kBytes = sizeof(Element);
  if constexpr (kBytes == 8 && kAlign == 16) {
    load_shared<Element, kCount>(from, to);
  } else if constexpr (kBytes == 8 || kAlign < 4) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = load_one<Element>(from + i * kBytes);
  } else {
    constexpr int kWords = kCount * kBytes / 4, kWide = kAlign / 4;
    uint32_t words[kWords];
#pragma unroll
    for (int i = 0; i < kWords; i += kWide) {
      if constexpr (kWide == 4) {
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[i]), "=r"(words[i + 1]), "=r"(words[i + 2]), "=r"(words[i + 3])
                     : "r"(from + i * 4));
      } else if constexpr (kWide == 2) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words[i]), "=r"(words[i + 1]) : "r"(from + i * 4));
      } else {
        words[i] = load_word(from + i * 4);
      }
    }
    unpack<Element>(words, to);
  }
}

// What a lane computes of each block: kRows rows by kColumns columns of C. kStep columns of the block at a time.
template <class Element_, int kBlockM_, int kBlockK_, int kRows_, int kStep_, int kColumns_>
struct FixedShare {
  using Element = Element_;
  static constexpr int kBlockM = kBlockM_, kBlockK = kBlockK_, kRows = kRows_, kStep = kStep_, kColumns = kColumns_;
  static constexpr int kLanes = (kBlockM + kRows - 1) / kRows;  // of a block
  static constexpr int kBlockBytes = kBlockM * kBlockK * int(sizeof(Element));
};

// Rows of B for kStep columns of a block.
template <class Tile, bool kVector>
__device__ inline void load_b(const char* b, int64_t pitch, int columns, bool wide,
                              Sum<typename Tile::Element> (&to)[Tile::kStep][Tile::kColumns]) {
  using Element = typename Tile::Element;
  if constexpr (kVector) {
    // A column whose elements are next to each other.
    constexpr int kAlign = alignment_of(Tile::kBlockK * int(sizeof(Element))), kWide = kAlign / int(sizeof(Element));
    constexpr int kLoad = Tile::kStep % kWide == 0 ? kWide : 1;
#pragma unroll
    for (int i = 0; i < Tile::kStep; i += kLoad) {
      Sum<Element> loaded[kLoad];
      load<kLoad>(reinterpret_cast<const Element*>(b) + i, true, loaded);
#pragma unroll
      for (int j = 0; j < kLoad; ++j) to[i + j][0] = loaded[j];
    }
  } else if (Tile::kColumns > 1 && wide) {
#pragma unroll
    for (int i = 0; i < Tile::kStep; ++i) {
      load<Tile::kColumns>(reinterpret_cast<const Element*>(b + i * pitch), true, to[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < Tile::kStep; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kColumns; ++j) {
        to[i][j] = j < columns ? to_float(reinterpret_cast<const Element*>(b + i * pitch)[j]) : 0;
      }
    }
  }
}

template <class Tile, bool kVector>
__device__ inline void multiply_tile(uint32_t a, const char* b, int64_t pitch, int columns, bool wide,
                                     Sum<typename Tile::Element> (&sums)[Tile::kRows][Tile::kColumns]) {
  using Element = typename Tile::Element;
  constexpr int kBytes = sizeof(Element), kStep = Tile::kStep;
  constexpr bool kWhole = kStep == Tile::kBlockK;
  constexpr int kPart = Tile::kRows * Tile::kBlockK * kBytes;
  constexpr int kAlign = alignment_of(Tile::kLanes == 1 ? Tile::kBlockBytes : Tile::kBlockBytes | kPart);
#pragma unroll
  for (int k = 0; k < Tile::kBlockK; k += kStep) {
    Sum<Element> b_values[kStep][Tile::kColumns];
    load_b<Tile, kVector>(b + k * (kVector ? kBytes : pitch), pitch, columns, wide, b_values);
    if constexpr (kWhole) {
      Sum<Element> values[Tile::kRows * kStep];
      load_values<Element, kAlign>(a, values);
#pragma unroll
      for (int i = 0; i < kStep; ++i) {
#pragma unroll
        for (int t = 0; t < Tile::kRows; ++t) {
#pragma unroll
          for (int j = 0; j < Tile::kColumns; ++j) {
            sums[t][j] = fma(values[t * kStep + i], b_values[i][j], sums[t][j]);
          }
        }
      }
    } else {
      constexpr int kRowAlign = alignment_of(kAlign | Tile::kBlockK * kBytes | kStep * kBytes);
#pragma unroll
      for (int t = 0; t < Tile::kRows; ++t) {
        Sum<Element> values[kStep];
        load_values<Element, kRowAlign>(a + (t * Tile::kBlockK + k) * kBytes, values);
#pragma unroll
        for (int i = 0; i < kStep; ++i) {
#pragma unroll
          for (int j = 0; j < Tile::kColumns; ++j) sums[t][j] = fma(values[i], b_values[i][j], sums[t][j]);
        }
      }
    }
  }
}

// Of a block that extends beyond K: the columns before `count`.
template <class Tile>
__device__ inline void multiply_last(uint32_t a, const char* b, int64_t pitch, int columns, int count,
                                     Sum<typename Tile::Element> (&sums)[Tile::kRows][Tile::kColumns]) {
  using Element = typename Tile::Element;
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      if (j >= columns) continue;
      const Sum<Element> b_value = to_float(reinterpret_cast<const Element*>(b + k * pitch)[j]);
#pragma unroll
      for (int t = 0; t < Tile::kRows; ++t) {
        sums[t][j] = fma(load_one<Element>(a + (t * Tile::kBlockK + k) * int(sizeof(Element))), b_value, sums[t][j]);
      }
    }
  }
}

// Lane i has the begin of block row row + i, counted as in the pipe, or where a row begins before the chunk or ends
// behind it, where its part here does.
struct RowBegins {
  int begins, base;

  template <class Pipe>
  __device__ void load(const RowChunks& rows, const RowChunk& chunk, const Pipe& pipe, int row, int lane) {
    base = row;
    const int begin = __ldg(rows.row_ptr + min(row + lane, rows.block_rows));
    begins = min(max(begin, chunk.entry_begin) - pipe.first, pipe.end);
  }
};

// kVector: B has one column, whose elements are next to each other and aligned as blocks need them. kPlain: B's rows
// are aligned for the columns of a lane, which are a divisor of N, and no block extends beyond K.
template <class Tile, bool kVector, bool kPlain>
__device__ inline void fixed_chunk(const LaunchArgs& args, const RowChunks& rows, int at, int panel, Phases& phases,
                                   char* own) {
  using Element = typename Tile::Element;
  constexpr int kColumns = Tile::kColumns, kRows = Tile::kRows, kMostRows = 31;
  const LaneLayout& lanes = rows.lanes;
  const int lane = threadIdx.x % 32;
  const RowChunk chunk = read_chunk(rows, at);
  Pipe<Element, Tile::kBlockBytes> pipe(args, lanes, chunk, phases, own, lane);

  const int column = lane & (lanes.column_lanes - 1), rest = lane / lanes.column_lanes;
  const int part = rest % Tile::kLanes, entry_lane = rest / Tile::kLanes;
  const int entry_stride = lanes.column_lanes * Tile::kLanes, entry_lanes = lanes.rows * lanes.shares;
  const int64_t col = int64_t(panel) * lanes.columns + column * kColumns;
  const int columns = int(max(int64_t(0), min(int64_t(kColumns), args.n - col)));
  const int64_t pitch = kVector ? int64_t(sizeof(Element)) : args.ldb * int64_t(sizeof(Element));
  const char* const b = static_cast<const char*>(args.b) + col * int64_t(sizeof(Element));
  const bool wide = kPlain || (columns == kColumns && args.ldb % kColumns == 0 &&
                               reinterpret_cast<uintptr_t>(args.b) % (kColumns * sizeof(Element)) == 0);
  const uint32_t values = pipe.values + part * (kRows * Tile::kBlockK * int(sizeof(Element)));
  const int last_whole = int(args.cols - Tile::kBlockK);
  const float alpha = alpha_of(args.epilogue);
  const bool plain = only_scales(args.epilogue, kTypeOf<Element>);
  auto* const parts = static_cast<Sum<Element>*>(rows.sums);
  const bool in_use = columns > 0 && entry_lane < entry_lanes && part * kRows < Tile::kBlockM;

  // Rows of which other chunks have a part.
  const int chunk_end = chunk.entry_end < 0 ? ~chunk.entry_end : chunk.entry_end;
  const bool some = chunk.row_begin < chunk.row_end;
  const int begun = some && __ldg(rows.row_ptr + chunk.row_begin) < chunk.entry_begin ? chunk.row_begin : -1;
  const int unfinished = some && __ldg(rows.row_ptr + chunk.row_end) > chunk_end ? chunk.row_end - 1 : -1;

  RowBegins begins;
  begins.base = chunk.row_begin - kMostRows - 1;  // none yet
  const int row_of_many = entry_lane / lanes.shares, share_of_many = entry_lane % lanes.shares;
  unsigned long_rows = 0;  // of the batch: those that are far longer than the others
#pragma unroll 1
  for (int row = chunk.row_begin; row < chunk.row_end;) {
    if (row + lanes.rows - begins.base > kMostRows) {
      begins.load(rows, chunk, pipe, row, lane);
      const int length = __shfl_down_sync(kAllLanes, begins.begins, 1) - begins.begins;
      const int count = min(kMostRows, chunk.row_end - row);
      const int all = __shfl_sync(kAllLanes, begins.begins, count) - __shfl_sync(kAllLanes, begins.begins, 0);
      const bool is_long = lane < count && length * count > 2 * all + 4 * count * lanes.shares;
      long_rows = __ballot_sync(kAllLanes, is_long);
    }
    // Some rows at once, before the next long one, or that alone, by all lanes.
    const int in_batch = row - begins.base, before = __ffs(long_rows >> in_batch) - 1;
    const bool alone = before == 0;
    const int most = alone ? 1 : before > 0 ? min(before, lanes.rows) : lanes.rows;
    const int now = min(most, chunk.row_end - row), shares = alone ? entry_lanes : lanes.shares;
    const int mine = alone ? 0 : row_of_many, share = alone ? entry_lane : share_of_many;
    const int begin = __shfl_sync(kAllLanes, begins.begins, in_batch + mine);
    const int to = __shfl_sync(kAllLanes, begins.begins, min(in_batch + mine + 1, 31));
    const int end = __shfl_sync(kAllLanes, begins.begins, in_batch + now);
    const bool active = in_use && mine < now;
    int e = active ? begin + share : end;

    Sum<Element> sums[kRows][kColumns] = {};
    int done;
    do {
      done = pipe.wait(end);
      const int stop = min(to, done);
#pragma unroll 1
      for (; e < stop; e += shares) {
        const int place = e & pipe.mask;
        const int first_row = int(load_word(pipe.first_rows + place * 4));
        const uint32_t a = values + place * Tile::kBlockBytes;
        const char* const from = b + uint64_t(uint32_t(first_row)) * uint32_t(pitch);
        if (kPlain || first_row <= last_whole) {
          multiply_tile<Tile, kVector>(a, from, pitch, columns, wide, sums);
        } else {
          multiply_last<Tile>(a, from, pitch, columns, int(args.cols - first_row), sums);
        }
      }
      pipe.release(args, done);
    } while (done < end);
#pragma unroll 1
    for (int half = shares / 2; half > 0; half /= 2) {
#pragma unroll
      for (int t = 0; t < kRows; ++t) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sums[t][j] += __shfl_down_sync(kAllLanes, sums[t][j], half * entry_stride);
      }
    }
    if (active && share == 0) {
      const int of = row + mine;
      const int64_t c_row = int64_t(of) * Tile::kBlockM + part * kRows;
      if (of == begun || of == unfinished) {
        const int64_t sum_row = (int64_t(at) * 2 + (of == begun ? 0 : 1)) * Tile::kBlockM + part * kRows;
#pragma unroll
        for (int t = 0; t < kRows; ++t) {
          if (Tile::kBlockM % kRows != 0 && part * kRows + t >= Tile::kBlockM) continue;
#pragma unroll
          for (int j = 0; j < kColumns; ++j) {
            parts[(sum_row + t) * lanes.panels * lanes.columns + col + j] = sums[t][j];
          }
        }
      } else {
#pragma unroll
        for (int t = 0; t < kRows; ++t) {
          if (Tile::kBlockM % kRows != 0 && part * kRows + t >= Tile::kBlockM) continue;
          if (c_row + t < args.rows) write_row<Element>(args, plain, alpha, c_row + t, col, columns, sums[t]);
        }
      }
    }
    row += now;
  }
  pipe.leave();
}

}  // namespace sparsek::cuda::few_columns
