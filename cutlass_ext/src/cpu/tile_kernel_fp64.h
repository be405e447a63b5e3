// SPDX-License-Identifier: Apache-2.0
// The tile function for elements of fp64, summed in fp64. Included once by each kernel_*.cpp, like tile_kernel.h, for
// whose instruction set the compiler makes the vectors.
#pragma once

#include "cpu/few_columns.h"
#include "cpu/few_columns_rule.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

using Doubles = double __attribute__((vector_size(64)));
constexpr int kDoubles = 8;
constexpr int kStripDoubles = 24;  // columns summed in registers at once
constexpr int kStripRows = 4;      // rows summed in registers at once
static_assert(kTileCols % kStripDoubles == 0 && kStripDoubles % kDoubles == 0, "strips must cut a tile evenly");

// A strip of C: rows [row, row + kRows), all in one block row, columns [col, col + cols), cols <= kStripDoubles. Adds
// the products up in the order of increasing k. sums: (kRows, kStripDoubles).
template <int kRows>
void sum_strip(const Product& product, const Tile& tile, int slot, int64_t in_block, int64_t col, int cols,
               double* sums) {
  constexpr int kVectors = kStripDoubles / kDoubles;
  const int64_t block_size = static_cast<int64_t>(product.block_m) * product.block_k;
  Doubles sum[kRows][kVectors] = {};
  for (int32_t e = tile.entry_begin; e < tile.entry_begin + tile.entry_count; ++e) {
    const int32_t block = product.entry_block[static_cast<int64_t>(e) * product.slots + slot];
    if (block < 0) continue;
    const double* const a =
        static_cast<const double*>(product.values) + block * block_size + in_block * product.block_k;
    const int64_t first = product.entry_k[e];
    const int64_t left = product.depth - first;  // columns beyond K are not multiplied
    const int64_t width = left < product.block_k ? left : product.block_k;
    for (int64_t k = 0; k < width; ++k) {
      const double* b = static_cast<const double*>(product.b) + (first + k) * product.ldb + col;
      double part[kStripDoubles];
      if (cols < kStripDoubles) {
        for (int j = 0; j < kStripDoubles; ++j) part[j] = j < cols ? b[j] : 0;
        b = part;
      }
      Doubles row[kVectors];
      __builtin_memcpy(row, b, sizeof(row));
      for (int i = 0; i < kRows; ++i) {
        const double factor = a[i * product.block_k + k];
        for (int j = 0; j < kVectors; ++j) sum[i][j] += factor * row[j];
      }
    }
  }
  __builtin_memcpy(sums, sum, sizeof(sum));
}

// Each activation gives NaN for NaN, Inf for Inf, and its limit, 0 or -0, for -Inf.
inline double activated_fp64(sparsek_activation activation, double x) {
  if (activation == SPARSEK_ACTIVATION_NONE || x != x) return x;
  if (x == -__builtin_inf()) return -0.0;
  switch (activation) {
    case SPARSEK_ACTIVATION_GELU:
      return 0.5 * x * __builtin_erfc(-x * 0.70710678118654752440);
    case SPARSEK_ACTIVATION_SILU:
      return x / (1 + __builtin_exp(-x));
    default:
      return x > 0 ? x : 0;
  }
}

// C = act(alpha * sums + beta * c_in + bias) for one row of a strip.
inline void write_strip_row(const Product& product, int64_t row, int64_t col, int cols, const double* sums) {
  double* const c = static_cast<double*>(product.c) + row * product.ldc + col;
  const double* const c_in = static_cast<const double*>(product.c_in) + row * product.ldc_in + col;
  const double* const bias = static_cast<const double*>(product.bias);
  const double alpha = product.alpha, beta = product.beta;
  for (int j = 0; j < cols; ++j) {
    double v = alpha * sums[j];
    if (beta != 0) v += beta * c_in[j];
    if (product.bias_kind != SPARSEK_BIAS_NONE) v += bias[product.bias_kind == SPARSEK_BIAS_ROW ? row : col + j];
    c[j] = activated_fp64(product.activation, v);
  }
}

template <int kRows>
void run_strips(const Product& product, const Tile& tile, int slot, int64_t row, int64_t in_block) {
  alignas(64) double sums[kRows * kStripDoubles];
  for (int64_t col = tile.col; col < tile.col_end; col += kStripDoubles) {
    const int64_t left = tile.col_end - col;
    const int cols = static_cast<int>(left < kStripDoubles ? left : kStripDoubles);
    sum_strip<kRows>(product, tile, slot, in_block, col, cols, sums);
    for (int i = 0; i < kRows; ++i) write_strip_row(product, row + i, col, cols, sums + i * kStripDoubles);
  }
}

// Rows [row, row + rows) of C, all in one block row, at most kFewRows, for few columns.
inline void run_few_columns_fp64(const Product& product, const Tile& tile, int slot, int64_t row, int rows,
                                 int32_t in_block) {
  const int cols = static_cast<int>(tile.col_end - tile.col);
  double sums[kFewRows];
  for (int col = 0; col < cols; ++col) {
    sum_column<double>(product, tile, slot, in_block, rows, col, sums);
    for (int i = 0; i < rows; ++i) write_strip_row(product, row + i, tile.col + col, 1, sums + i);
  }
}

void run_tile_fp64(const Product& product, const Tile& tile, const Scratch&) {
  const bool few_columns = has_few_columns(tile.col_end - tile.col, product.block_m);
  const int64_t first_in_block = tile.row % product.block_m;
  for (int slot = 0; slot < product.slots; ++slot) {
    const int64_t begin = tile.row + static_cast<int64_t>(slot) * product.block_m;
    const int64_t left = tile.row_end - begin, in_slot = product.block_m - first_in_block;
    const int64_t end = begin + (left < in_slot ? left : in_slot);
    int64_t row = begin;
    for (; few_columns && row < end; row += kFewRows) {
      run_few_columns_fp64(product, tile, slot, row, static_cast<int>(end - row < kFewRows ? end - row : kFewRows),
                           static_cast<int32_t>(first_in_block + row - begin));
    }
    for (; row + kStripRows <= end; row += kStripRows) {
      run_strips<kStripRows>(product, tile, slot, row, first_in_block + row - begin);
    }
    for (; row < end; ++row) run_strips<1>(product, tile, slot, row, first_in_block + row - begin);
  }
}

}  // namespace
}  // namespace sparsek::cpu
