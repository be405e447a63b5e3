// SPDX-License-Identifier: Apache-2.0
// Sums of a strip of columns of some block rows, in registers: the inner loops of row_kernel.h, and the table in which
// it finds the one for a number of rows and columns.
#pragma once

#include "abi/sum_type.h"
#include "cpu/element.h"
#include "cpu/kernel.h"
#include "cpu/tile_kernel.h"

namespace sparsek::cpu {
namespace {

inline float multiply_add(float a, float b, float c) {
  if constexpr (Isa::kFusesMultiplyAdd) return __builtin_fmaf(a, b, c);
  return a * b + c;
}
inline double multiply_add(double a, double b, double c) {
  if constexpr (Isa::kFusesMultiplyAdd) return __builtin_fma(a, b, c);
  return a * b + c;
}

// One column: a vector of one lane.
template <typename S>
struct Lanes<S, 1> {
  using Vector = S;
  struct Part {};
  static Part part(int) { return {}; }
  static S zero() { return 0; }
  static S broadcast(S x) { return x; }
  static S multiply(S a, S b) { return a * b; }
  static S multiply_add(S a, S b, S c) { return cpu::multiply_add(a, b, c); }
  static S load(const S* p) { return *p; }
  static S load(const S* p, Part) { return *p; }
  static S load(const Bf16* p, Part) { return Isa::to_float(*p); }
  static S load(const Fp16* p, Part) { return Isa::to_float(*p); }
  static void store(S* p, S v) { *p = v; }
  static void store(S* p, S v, Part) { *p = v; }
};

// What of a block row's values is multiplied: those of `count` blocks, the first of them at `a`, which is the piece's
// first row; `step` elements from block to block. k: (count), the first row of B of each.
template <typename S>
struct Walk {
  const S* a;
  const int32_t* k;
  int32_t count;
};

// Where the strip's sums go: into C, as alpha * sum, where c is not null, else to scratch memory.
template <typename S>
struct Target {
  S* sums;
  S* c;
};

// What the strips of a piece have in common.
template <typename T>
struct Strip {
  int64_t step;    // elements of a block
  int64_t pitch;   // elements from one row of a block to the next
  int64_t across;  // elements from one column of a block to the next
  int32_t width;   // columns of the blocks that are multiplied
  const T* b;      // at the strip's first column
  int64_t ldb;
  int cols;    // of the strip
  bool first;  // the sums begin at 0
  Sum<T> alpha;
  int64_t ldc;
};

// Adds up strips of kJoint block rows: (kRows, kVectors * kWidth) each, the last vector as far as there are columns. As
// many blocks of each as the one with the fewest has; the walks are moved behind them. kSquare: the blocks are kRows
// wide, which unrolls them.
template <typename T, int kWidth, int kJoint, int kRows, int kVectors, bool kSquare>
void sum_blocks(const Strip<T>& strip, Walk<Sum<T>>* walks, const Target<Sum<T>>* targets) {
  using S = Sum<T>;
  using L = Lanes<S, kWidth>;
  const typename L::Part part = L::part(strip.cols - (kVectors - 1) * kWidth);
  int32_t count = walks[0].count;
  for (int t = 1; t < kJoint; ++t) count = walks[t].count < count ? walks[t].count : count;
  const int64_t pitch = kSquare ? kRows : strip.pitch, across = kSquare ? 1 : strip.across;
  const int64_t step = kSquare ? kRows * kRows : strip.step;
  typename L::Vector sum[kJoint][kRows][kVectors];
  const S* a[kJoint];
#pragma GCC unroll 8
  for (int t = 0; t < kJoint; ++t) {
    a[t] = walks[t].a;
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        sum[t][i][j] = strip.first ? L::zero() : L::load(targets[t].sums + i * kTileCols + j * kWidth);
      }
    }
  }
  for (int32_t e = 0; e < count; ++e) {
    const T* b[kJoint];
    const S* column[kJoint];
#pragma GCC unroll 8
    for (int t = 0; t < kJoint; ++t) {
      b[t] = strip.b + walks[t].k[e] * strip.ldb;
      column[t] = a[t];
    }
    const auto multiply_column = [&]() __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int t = 0; t < kJoint; ++t) {
        typename L::Vector row[kVectors];
        if constexpr (kVectors > 1) {
#pragma GCC unroll 8
          for (int j = 0; j < kVectors - 1; ++j) row[j] = L::load(b[t] + j * kWidth);
        }
        row[kVectors - 1] = L::load(b[t] + (kVectors - 1) * kWidth, part);
        b[t] += strip.ldb;
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          const typename L::Vector factor = L::broadcast(column[t][i * pitch]);
#pragma GCC unroll 8
          for (int j = 0; j < kVectors; ++j) sum[t][i][j] = L::multiply_add(factor, row[j], sum[t][i][j]);
        }
        column[t] += across;
      }
    };
    if constexpr (kSquare) {
#pragma GCC unroll 8
      for (int32_t k = 0; k < kRows; ++k) multiply_column();
    } else {
      for (int32_t k = 0; k < strip.width; ++k) multiply_column();
    }
#pragma GCC unroll 8
    for (int t = 0; t < kJoint; ++t) a[t] += step;
  }
#pragma GCC unroll 8
  for (int t = 0; t < kJoint; ++t) {
    walks[t].a = a[t];
    walks[t].k += count;
    walks[t].count -= count;
    if (targets[t].c != nullptr && walks[t].count == 0) {
      const typename L::Vector alpha = L::broadcast(strip.alpha);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        S* const c = targets[t].c + i * strip.ldc;
#pragma GCC unroll 8
        for (int j = 0; j < kVectors - 1; ++j) L::store(c + j * kWidth, L::multiply(alpha, sum[t][i][j]));
        L::store(c + (kVectors - 1) * kWidth, L::multiply(alpha, sum[t][i][kVectors - 1]), part);
      }
      continue;
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) L::store(targets[t].sums + i * kTileCols + j * kWidth, sum[t][i][j]);
    }
  }
}

template <typename T>
using SumFunction = void (*)(const Strip<T>& strip, Walk<Sum<T>>* walks, const Target<Sum<T>>* targets);

// How many block rows are summed at once, so that there are about as many chains of additions as are under way: rows
// times vectors of each.
constexpr int joint(int chains) { return chains <= 2 ? 4 : chains == 3 ? 3 : chains == 4 ? 2 : 1; }
constexpr int kMostJoint = 4;

// The instances of a width of vectors.
template <typename T>
struct SumTable {
  // One vector: [rows - 1][blocks are as wide as there are rows][joint(rows) block rows]
  SumFunction<T> narrow[kMaxRows][2][2];
  // [rows - 1][vectors - 1][joint(rows * vectors) block rows], of two vectors and more
  SumFunction<T> wide[kMaxRows][kMaxVectors][2];
};

template <typename T, int kWidth, int kRows = 1, int kVectors = 2>
constexpr void fill_wide(SumTable<T>& table) {
  if constexpr (kVectors <= Isa::vectors(kRows)) {
    auto& one = table.wide[kRows - 1][kVectors - 1];
    one[0] = sum_blocks<T, kWidth, 1, kRows, kVectors, false>;
    one[1] = sum_blocks<T, kWidth, joint(kRows * kVectors), kRows, kVectors, false>;
    fill_wide<T, kWidth, kRows, kVectors + 1>(table);
  }
}

template <typename T, int kWidth, bool kWhole, int kRows = 1>
constexpr void fill_sums(SumTable<T>& table) {
  if constexpr (kRows <= kMaxRows) {
    constexpr bool kUnrolls = __is_same(T, Sum<T>) && kWidth > 1;  // else their conversion takes the time
    auto& one = table.narrow[kRows - 1];
    one[0][0] = sum_blocks<T, kWidth, 1, kRows, 1, false>;
    one[1][0] = sum_blocks<T, kWidth, 1, kRows, 1, kUnrolls>;
    one[0][1] = sum_blocks<T, kWidth, joint(kRows), kRows, 1, false>;
    one[1][1] = sum_blocks<T, kWidth, joint(kRows), kRows, 1, kUnrolls>;
    if constexpr (kWhole) fill_wide<T, kWidth, kRows>(table);
    fill_sums<T, kWidth, kWhole, kRows + 1>(table);
  }
}

template <typename T, int kWidth, bool kWhole>
constexpr SumTable<T> make_sums() {
  SumTable<T> table{};
  fill_sums<T, kWidth, kWhole>(table);
  return table;
}

template <typename T, int kWidth, bool kWhole>
constexpr SumTable<T> kSums = make_sums<T, kWidth, kWhole>();

// The widths of vectors, in elements: one, those of shorter registers, whole ones.
template <typename T>
struct Widths {
  static constexpr int kLanesOfSums = Isa::lanes<Sum<T>>();
  static const SumTable<T>& table(int cols) {
    if (cols == 1) return kSums<T, 1, false>;
    if constexpr (kLanesOfSums > 4) {
      if (cols <= 4) return kSums<T, 4, false>;
    }
    if constexpr (kLanesOfSums > 8) {
      if (cols <= 8) return kSums<T, 8, false>;
    }
    return kSums<T, kLanesOfSums, true>;
  }
};

}  // namespace
}  // namespace sparsek::cpu
