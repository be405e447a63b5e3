// SPDX-License-Identifier: Apache-2.0
// One column: a part of row_kernel.h for instruction sets with permutations. Vectors lie along A's rows, so that A is
// read in whole vectors, whatever the block, and x = B is spread over them. Each lane has sums of its own, which are
// added up when the block row is complete: the order of sums is another one than by more columns.
//
//   Narrow blocks, up to a vector wide: the rows of a block follow each other in memory, so some of them are one vector
//   after the other; lane i of vector j is multiplied by x[(j * lanes + i) % width].
//   Single elements: x is gathered.
//   Wide blocks: each row in vectors of its own.
#pragma once

#include "cpu/element.h"
#include "cpu/kernel.h"
#include "cpu/row_sums.h"

namespace sparsek::cpu {
namespace {

constexpr int kMostDots = 8;  // vectors of sums at once
// Bytes of A, and of the index of single elements, that are asked for before they are needed: more than the processor
// does by itself, which short rows of small blocks would wait for.
constexpr int kAhead = 4096;

template <typename T>
void ask_ahead(const T* p) {
  __builtin_prefetch(reinterpret_cast<const char*>(p) + kAhead);
}

// A run of block rows by one column.
template <typename T>
struct DotRun {
  using S = Sum<T>;
  const int32_t* row_ptr;
  const int32_t* k;  // as in the plan
  const T* a;        // the first of the rows that are summed, in the first block of the matrix
  int64_t step;      // elements of a block
  int pitch;         // elements of a row of a block
  int rows;          // that are summed
  int elements;      // of these
  const T* x;
  int32_t places[kMostDots * Isa::lanes<S>()];  // of narrow blocks: i % pitch
};

// Adds up `width` lanes of each row.
template <typename S>
void add_lanes(const S* lanes, int rows, int width, S* sums) {
  for (int i = 0; i < rows; ++i, lanes += width) {
    S even = lanes[0], odd = width > 1 ? lanes[1] : S{0};
    int k = 2;
    for (; k + 1 < width; k += 2) {
      even += lanes[k];
      odd += lanes[k + 1];
    }
    sums[i] = even + (k < width ? odd + lanes[k] : odd);
  }
}

// Adds up groups of `width` lanes, a power of two, of vectors that consist of whole groups: a row each.
template <typename S, int kVectors>
struct GroupSums {
  static constexpr int kLanesOfSums = Isa::lanes<S>(), kMostSteps = 3;  // 8 lanes
  using L = Lanes<S, kLanesOfSums>;
  int steps = 0, of_vector;
  typename L::Places across[kMostSteps], first;

  explicit GroupSums(int width) : of_vector(kLanesOfSums / width) {
    int32_t places[kLanesOfSums];
    for (int distance = 1; distance < width; distance *= 2) {
      for (int i = 0; i < kLanesOfSums; ++i) places[i] = i ^ distance;
      across[steps++] = L::places(places);
    }
    for (int i = 0; i < kLanesOfSums; ++i) places[i] = i * width % kLanesOfSums;
    first = L::places(places);
  }

  void add_up(typename L::Vector (&sum)[kVectors], int rows, S* sums) const {
    for (int s = 0; s < steps; ++s) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sum[j] = L::add(sum[j], L::permute(sum[j], across[s]));
    }
    alignas(64) S lanes[kVectors * kLanesOfSums];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) L::store(lanes + j * of_vector, L::permute(sum[j], first));
    for (int i = 0; i < rows; ++i) sums[i] = lanes[i];
  }
};

// Functions that sum rows of block rows [begin, end): those of block row r to sums + (r - begin) * stride.
template <typename T>
using DotFunction = void (*)(const DotRun<T>& run, int32_t begin, int32_t end, Sum<T>* sums, int64_t stride);

// Vectors lie along the rows of narrow blocks. kSpread: lanes of the register that holds x; kAlike: all vectors are
// multiplied by the same lanes. Few vectors have several sums each, whose chains overlap.
template <typename T, int kWidth, int kVectors, int kSpread, bool kAlike>
void sum_narrow(const DotRun<T>& run, int32_t begin, int32_t end, Sum<T>* sums, int64_t stride) {
  using S = Sum<T>;
  using L = Lanes<S, kWidth>;
  using X = Lanes<S, kSpread>;
  constexpr int kChains = kVectors == 1 ? 4 : kVectors <= 3 ? 2 : 1;
  constexpr int kPlaces = kAlike ? 1 : kVectors;
  const typename L::Part last = L::part(run.elements - (kVectors - 1) * kWidth);
  const typename X::Part width = X::part(run.pitch);
  typename L::Places places[kPlaces];
#pragma GCC unroll 8
  for (int j = 0; j < kPlaces; ++j) places[j] = L::places(run.places + j * kWidth);
  // Rows are alike where a vector consists of whole rows, and where it has a single one, of any width.
  constexpr bool kMayHaveGroups = kAlike && kWidth == Isa::lanes<S>();
  const bool has_groups = kMayHaveGroups && (run.pitch & (run.pitch - 1)) == 0;
  const GroupSums<S, kVectors> groups(has_groups ? run.pitch : 1);
  const T* a = run.a + run.row_ptr[begin] * run.step;
  const auto multiply_block = [&](int32_t e, typename L::Vector* to) __attribute__((always_inline)) {
    const typename L::Vector x = L::widen(X::load(run.x + run.k[e], width));
    typename L::Vector factor;
    if constexpr (kAlike) factor = L::permute(x, places[0]);
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) {
      ask_ahead(a + j * kWidth);
      if constexpr (!kAlike) factor = L::permute(x, places[j]);
      if constexpr (kVectors > 1) {
        to[j] =
            L::multiply_add(j == kVectors - 1 ? L::load(a + j * kWidth, last) : L::load(a + j * kWidth), factor, to[j]);
      } else {
        to[j] = L::multiply_add(L::load(a, last), factor, to[j]);
      }
    }
    a += run.step;
  };
  for (int32_t r = begin, e = run.row_ptr[begin]; r < end; ++r, sums += stride) {
    typename L::Vector sum[kChains][kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < kChains; ++c) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sum[c][j] = L::zero();
    }
    const int32_t behind = run.row_ptr[r + 1];
    for (; e + kChains <= behind; e += kChains) {
#pragma GCC unroll 8
      for (int c = 0; c < kChains; ++c) multiply_block(e + c, sum[c]);
    }
    for (; e < behind; ++e) multiply_block(e, sum[0]);
#pragma GCC unroll 8
    for (int c = 1; c < kChains; ++c) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) sum[0][j] = L::add(sum[0][j], sum[c][j]);
    }
    if constexpr (kMayHaveGroups) {
      if (has_groups) {
        groups.add_up(sum[0], run.rows, sums);
        continue;
      }
    }
    alignas(64) S lanes[kVectors * kWidth];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) L::store(lanes + j * kWidth, sum[0][j]);
    add_lanes(lanes, run.rows, run.pitch, sums);
  }
}

// Rows of single elements.
template <typename S>
void sum_elements(const DotRun<S>& run, int32_t begin, int32_t end, S* sums) {
  constexpr int kLanesOfSums = Isa::lanes<S>();
  using L = Lanes<S, kLanesOfSums>;
  for (int32_t r = begin, e = run.row_ptr[begin]; r < end; ++r, ++sums) {
    const int32_t behind = run.row_ptr[r + 1];
    typename L::Vector sum = L::zero();
    ask_ahead(run.a + e);
    ask_ahead(run.k + e);
    for (; e + kLanesOfSums <= behind; e += kLanesOfSums) {
      ask_ahead(run.a + e + kLanesOfSums);
      ask_ahead(run.k + e + kLanesOfSums);
      sum = L::multiply_add(L::load(run.a + e), L::gather(run.x, run.k + e), sum);
    }
    if (e < behind) {
      const typename L::Part rest = L::part(behind - e);
      sum = L::multiply_add(L::load(run.a + e, rest), L::gather(run.x, run.k + e, rest), sum);
      e = behind;
    }
    *sums = L::add_up(sum);
  }
}

// kRows rows of wide blocks, each in vectors of its own.
template <typename T, int kRows>
void sum_wide(const DotRun<T>& run, int32_t begin, int32_t end, Sum<T>* sums, int64_t stride) {
  using S = Sum<T>;
  constexpr int kLanesOfSums = Isa::lanes<S>();
  using L = Lanes<S, kLanesOfSums>;
  const int whole = (run.pitch - 1) / kLanesOfSums * kLanesOfSums;  // of a row; at least one element is behind them
  const typename L::Part rest = L::part(run.pitch - whole);
  const T* a = run.a + run.row_ptr[begin] * run.step;
  for (int32_t r = begin, e = run.row_ptr[begin]; r < end; ++r, sums += stride) {
    typename L::Vector sum[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum[i] = L::zero();
    for (const int32_t behind = run.row_ptr[r + 1]; e < behind; ++e, a += run.step) {
      const T* const x = run.x + run.k[e];
      for (int k = 0; k < whole; k += kLanesOfSums) {
        const typename L::Vector factor = L::load(x + k);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) sum[i] = L::multiply_add(L::load(a + i * run.pitch + k), factor, sum[i]);
      }
      const typename L::Vector factor = L::load(x + whole, rest);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        sum[i] = L::multiply_add(L::load(a + i * run.pitch + whole, rest), factor, sum[i]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sums[i] = L::add_up(sum[i]);
  }
}

template <typename T>
struct DotTable {
  DotFunction<T> narrow[kMostDots][3][2];  // [vectors - 1][x in a quarter, a half, a whole of a vector][alike]
  DotFunction<T> wide[kMostDots];          // [rows - 1]
  DotFunction<T> least;                    // at most four elements
};

template <typename T, int kCount = 1>
constexpr void fill_dots(DotTable<T>& table) {
  if constexpr (kCount <= kMostDots) {
    constexpr int kLanesOfSums = Isa::lanes<Sum<T>>();
    constexpr int kHalf = kLanesOfSums / 2 < 4 ? 4 : kLanesOfSums / 2;
    auto& narrow = table.narrow[kCount - 1];
    narrow[0][0] = sum_narrow<T, kLanesOfSums, kCount, 4, false>;
    narrow[0][1] = sum_narrow<T, kLanesOfSums, kCount, 4, true>;
    narrow[1][0] = sum_narrow<T, kLanesOfSums, kCount, kHalf, false>;
    narrow[1][1] = sum_narrow<T, kLanesOfSums, kCount, kHalf, true>;
    narrow[2][0] = sum_narrow<T, kLanesOfSums, kCount, kLanesOfSums, false>;
    narrow[2][1] = sum_narrow<T, kLanesOfSums, kCount, kLanesOfSums, true>;
    table.wide[kCount - 1] = sum_wide<T, kCount>;
    fill_dots<T, kCount + 1>(table);
  }
}

template <typename T>
constexpr DotTable<T> make_dots() {
  DotTable<T> table{};
  fill_dots<T>(table);
  table.least = sum_narrow<T, 4, 1, 4, true>;
  return table;
}

template <typename T>
constexpr DotTable<T> kDots = make_dots<T>();

// How the rows of a block are summed.
template <typename T>
struct DotParts {
  int most;  // rows of a part
  bool narrow, alike;
  int spread;  // of DotTable
};

template <typename T>
DotParts<T> dot_parts(DotRun<T>& run) {
  constexpr int kLanesOfSums = Isa::lanes<Sum<T>>();
  const bool narrow = run.pitch < kLanesOfSums;
  for (int i = 0, place = 0; narrow && i < kMostDots * kLanesOfSums; ++i) {
    run.places[i] = place;
    if (++place == run.pitch) place = 0;
  }
  return {narrow ? kMostDots * kLanesOfSums / run.pitch : kMostDots, narrow, kLanesOfSums % run.pitch == 0,
          run.pitch <= 4                  ? 0
          : 2 * run.pitch <= kLanesOfSums ? 1
                                          : 2};
}

// Sums of rows [0, rows) of each of block rows [begin, end), one after the other.
template <typename T>
void sum_rows(const DotParts<T>& parts, DotRun<T>& run, int32_t begin, int32_t end, int rows, Sum<T>* sums) {
  constexpr int kLanesOfSums = Isa::lanes<Sum<T>>();
  const T* const first = run.a;
  for (int row = 0; row < rows; row += parts.most) {
    run.rows = rows - row < parts.most ? rows - row : parts.most;
    run.elements = run.rows * run.pitch;
    run.a = first + static_cast<int64_t>(row) * run.pitch;
    DotFunction<T> sum = kDots<T>.wide[run.rows - 1];
    if (parts.narrow) {
      sum = run.elements <= 4 ? kDots<T>.least
                              : kDots<T>.narrow[(run.elements - 1) / kLanesOfSums][parts.spread][parts.alike];
    }
    sum(run, begin, end, sums + row, rows);
  }
  run.a = first;
}

}  // namespace
}  // namespace sparsek::cpu
