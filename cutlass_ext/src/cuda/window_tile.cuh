// SPDX-License-Identifier: Apache-2.0
// What a lane of the row_window family computes of the blocks that lie in shared memory.
#pragma once

#include "cuda/few_columns_elements.cuh"
#include "cuda/launch_args.h"
#include "cuda/window_layout.h"

namespace sparsek::cuda::few_columns {

// What a lane computes of each block: all of its rows by kColumns columns of C, kStep columns of the block at a time.
// Columns are in pieces of 16 bytes. The pieces of one number are next to each other in all lanes, so that eight lanes
// load a line.
template <class Element_, int kBlock_, int kStep_, int kColumns_, int kWarps_>
struct WindowTile {
  using Element = Element_;
  static constexpr int kBlock = kBlock_, kStep = kStep_, kColumns = kColumns_;
  static constexpr int kBytes = sizeof(Element), kBlockBytes = kBlock * kBlock * kBytes;
  static constexpr int kPiece = 16 / kBytes, kPieces = kColumns / kPiece;
  // A lane has a bunch of so many blocks one after the other, whose first is aligned to 16 bytes.
  static constexpr int kBunch = kBlockBytes % 16 == 0 ? 1 : kBlockBytes % 8 == 0 ? 2 : 4;
  static constexpr int kWarps = kWarps_;
};

// The columns of a lane in each piece, and where pieces begin; those beyond N begin with the first one.
template <class Tile>
struct Pieces {
  int columns[Tile::kPieces], begin[Tile::kPieces];

  __device__ int column(int j) const { return begin[j / Tile::kPiece] + j % Tile::kPiece; }
  __device__ bool has(int j) const { return j % Tile::kPiece < columns[j / Tile::kPiece]; }
};

// Rows of B for kStep columns of a block.
template <class Tile>
using RowsOfB = Sum<typename Tile::Element>[Tile::kStep][Tile::kColumns];

template <class Tile, bool kPlain>
__device__ inline void load_rows(const char* b, int64_t pitch, const Pieces<Tile>& pieces, RowsOfB<Tile>& to) {
  using Element = typename Tile::Element;
#pragma unroll
  for (int i = 0; i < Tile::kStep; ++i) {
    const auto* const row = reinterpret_cast<const Element*>(b + i * pitch);
#pragma unroll
    for (int p = 0; p < Tile::kPieces; ++p) {
      Sum<Element> piece[Tile::kPiece];
      if constexpr (kPlain) {
        load<Tile::kPiece>(row + pieces.begin[p], true, piece);
      } else {
#pragma unroll
        for (int j = 0; j < Tile::kPiece; ++j)
          piece[j] = j < pieces.columns[p] ? to_float(row[pieces.begin[p] + j]) : 0;
      }
#pragma unroll
      for (int j = 0; j < Tile::kPiece; ++j) to[i][p * Tile::kPiece + j] = piece[j];
    }
  }
}

// kCount values from element kFirst on, of what is aligned to 16 bytes, by loads of two or of 16 bytes where these are
// all wanted: wider loads take as long for each byte.
template <class Element, int kFirst, int kCount>
__device__ inline void load_part(uint32_t from, Sum<Element> (&to)[kCount]) {
  constexpr int kBytes = sizeof(Element), kLoad = (kFirst | kCount) * kBytes % 16 == 0 ? 16 / kBytes : 2;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int load_begin = i - (kFirst + i) % kLoad;
    if (load_begin < 0 || load_begin + kLoad > kCount) {
      to[i] = load_one<Element>(from + (kFirst + i) * kBytes);
    } else if (load_begin == i) {
      Sum<Element> loaded[kLoad];
      load_shared<Element, kLoad>(from + (kFirst + i) * kBytes, loaded);
#pragma unroll
      for (int j = 0; j < kLoad; ++j) {
        if (i + j < kCount) to[i + j] = loaded[j];
      }
    }
  }
}

template <class Tile>
using SumsOfBlock = Sum<typename Tile::Element>[Tile::kBlock][Tile::kColumns];

// Adds block kAt of a bunch, whose values begin at `a`, kStep columns of it from kFrom on.
template <class Tile, int kAt, int kFrom>
__device__ inline void multiply_step(uint32_t a, const RowsOfB<Tile>& b, SumsOfBlock<Tile>& sums) {
  using Element = typename Tile::Element;
  constexpr int kBlock = Tile::kBlock, kStep = Tile::kStep, kElements = kBlock * kBlock;
  if constexpr (kStep == kBlock) {
    Sum<Element> values[kElements];
    load_part<Element, kAt * kElements>(a, values);
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
#pragma unroll
      for (int t = 0; t < kBlock; ++t) {
#pragma unroll
        for (int j = 0; j < Tile::kColumns; ++j) sums[t][j] = fma(values[t * kBlock + i], b[i][j], sums[t][j]);
      }
    }
  } else {
    static_assert(Tile::kBunch == 1 && kBlock * Tile::kBytes % 8 == 0);
#pragma unroll
    for (int t = 0; t < kBlock; ++t) {
      Sum<Element> values[kStep];
      // A row of a block begins at a multiple of 8 bytes.
      load_part<Element, kFrom % (16 / Tile::kBytes)>(
          a + (t * kBlock + kFrom - kFrom % (16 / Tile::kBytes)) * Tile::kBytes, values);
#pragma unroll
      for (int i = 0; i < kStep; ++i) {
#pragma unroll
        for (int j = 0; j < Tile::kColumns; ++j) sums[t][j] = fma(values[i], b[i][j], sums[t][j]);
      }
    }
  }
}

// The blocks of a bunch, of which those from `begin` on before `stop` are the lane's. The rows of B for the next step
// are on their way meanwhile; where the next block is not the lane's, those of one that is.
template <class Tile, bool kPlain, int kAt, int kFrom>
__device__ inline void multiply_from(uint32_t a, const char* const (&b)[Tile::kBunch], int64_t pitch, int begin,
                                     int stop, const Pieces<Tile>& pieces, const RowsOfB<Tile>& now,
                                     SumsOfBlock<Tile>& sums) {
  constexpr bool kInBlock = kFrom + Tile::kStep < Tile::kBlock;
  constexpr int kNext = kInBlock ? kAt : kAt + 1, kNextFrom = kInBlock ? kFrom + Tile::kStep : 0;
  RowsOfB<Tile> next;
  if constexpr (kNext < Tile::kBunch) load_rows<Tile, kPlain>(b[kNext] + kNextFrom * pitch, pitch, pieces, next);
  if (Tile::kBunch == 1 || (kAt >= begin && kAt < stop)) multiply_step<Tile, kAt, kFrom>(a, now, sums);
  if constexpr (kNext < Tile::kBunch) {
    multiply_from<Tile, kPlain, kNext, kNextFrom>(a, b, pitch, begin, stop, pieces, next, sums);
  }
}

// A block that extends beyond K: its columns before `count`.
template <class Tile>
__device__ inline void multiply_last(uint32_t a, const char* b, int64_t pitch, int count, const Pieces<Tile>& pieces,
                                     SumsOfBlock<Tile>& sums) {
  using Element = typename Tile::Element;
#pragma unroll 1
  for (int k = 0; k < count; ++k) {
#pragma unroll
    for (int j = 0; j < Tile::kColumns; ++j) {
      if (!pieces.has(j)) continue;
      const Sum<Element> b_value = to_float(reinterpret_cast<const Element*>(b + k * pitch)[pieces.column(j)]);
#pragma unroll
      for (int t = 0; t < Tile::kBlock; ++t) {
        sums[t][j] = fma(load_one<Element>(a + (t * Tile::kBlock + k) * Tile::kBytes), b_value, sums[t][j]);
      }
    }
  }
}

// A bunch whose values begin at `a`, and the first rows of B for its blocks at `rows_at`.
template <class Tile, bool kPlain>
__device__ inline void multiply_bunch(const LaunchArgs& args, uint32_t a, uint32_t rows_at, const char* b,
                                      int64_t pitch, int begin, int stop, const Pieces<Tile>& pieces,
                                      SumsOfBlock<Tile>& sums) {
  constexpr int kBunch = Tile::kBunch;
  const auto row_of = [&](uint32_t first) { return b + uint64_t(first) * uint32_t(pitch); };
  if constexpr (!kPlain) {
    // Only the last block of a row extends beyond K.
    const int last = min(stop, kBunch) - 1, first = int(load_word(rows_at + last * 4));
    if (first > int(args.cols) - Tile::kBlock) {
      multiply_last<Tile>(a + last * Tile::kBlockBytes, row_of(first), pitch, int(args.cols) - first, pieces, sums);
      stop = last;
      if (begin >= stop) return;
    }
  }
  const uint32_t own = load_word(rows_at + begin * 4);
  const char* from[kBunch];
#pragma unroll
  for (int i = 0; i < kBunch; ++i) {
    const uint32_t first = load_word(rows_at + i * 4);
    from[i] = row_of(i >= begin && i < stop ? first : own);
  }
  RowsOfB<Tile> rows;
  load_rows<Tile, kPlain>(from[0], pitch, pieces, rows);
  multiply_from<Tile, kPlain, 0, 0>(a, from, pitch, begin, stop, pieces, rows, sums);
}

}  // namespace sparsek::cuda::few_columns
