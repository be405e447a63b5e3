// SPDX-License-Identifier: Apache-2.0
// Few columns (few_columns_rule.h): the values are read at the rate of memory, and vectors of columns would be mostly
// empty. Included by tile_kernel.h and tile_kernel_fp64.h, whose tile functions call it for such
// tiles.
//
//   For each slot of the tile, at most kFewRows rows at a time, one column of C after the other:
//     for each block: for each of its columns: add the products of all its rows to one sum a row, in registers
//     C = alpha * sums + beta * C, rounded once; with a bias or an activation by the tile function's epilogue
//
//   The values of a block row are read once from memory, in their order, and stay in the cache for the other columns.
//   Each sum is of the same products in the same order, added by the same operation, as in the strips.
#pragma once

#include "cpu/element.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

constexpr int kFewRows = 8;  // rows summed in registers at once

inline float multiply_add(float a, float b, float c) {
  if constexpr (Isa::kFusesMultiplyAdd) return __builtin_fmaf(a, b, c);
  return a * b + c;
}
inline double multiply_add(double a, double b, double c) {
  if constexpr (Isa::kFusesMultiplyAdd) return __builtin_fma(a, b, c);
  return a * b + c;
}

// An element in the type in which products are summed.
inline double to_sum(double x) { return x; }
template <typename T>
float to_sum(T x) {
  return Isa::to_float(x);
}
template <typename T>
using Sum = decltype(to_sum(T{}));

inline void store_one(float* p, float x) { *p = x; }
template <typename T>
void store_one(T* p, float x) {
  T part[Isa::kLanes];
  Isa::store(part, Isa::broadcast(x));
  *p = part[0];
}

// sums (kRows) = column `col` of the tile in the slot's rows from row `in_block` of its blocks on.
template <typename T, int kRows>
void sum_column(const Product& product, const Tile& tile, int slot, int32_t in_block, int col, Sum<T>* sums) {
  Sum<T> sum[kRows] = {};
  const int32_t pitch = product.block_k;
  const int64_t block_size = static_cast<int64_t>(product.block_m) * pitch;
  const T* const values = static_cast<const T*>(product.values) + static_cast<int64_t>(in_block) * pitch;
  const T* const b = static_cast<const T*>(product.b) + tile.col + col;
  const int32_t* block = product.entry_block + static_cast<int64_t>(tile.entry_begin) * product.slots + slot;
  for (int32_t e = 0; e < tile.entry_count; ++e, block += product.slots) {
    if (*block < 0) continue;
    const T* const a = values + *block * block_size;
    const int64_t first_k = product.entry_k[tile.entry_begin + e];
    const int64_t left = product.depth - first_k;  // columns beyond K are not multiplied
    const int width = left < pitch ? static_cast<int>(left) : pitch;
    const T* row_of_b = b + first_k * product.ldb;
    for (int k = 0; k < width; ++k, row_of_b += product.ldb) {
      const Sum<T> x = to_sum(*row_of_b);
      for (int i = 0; i < kRows; ++i) sum[i] = multiply_add(to_sum(a[i * pitch + k]), x, sum[i]);
    }
  }
  for (int i = 0; i < kRows; ++i) sums[i] = sum[i];
}

template <typename T>
void sum_column(const Product& product, const Tile& tile, int slot, int32_t in_block, int rows, int col, Sum<T>* sums) {
  switch (rows) {
    case 1:
      return sum_column<T, 1>(product, tile, slot, in_block, col, sums);
    case 2:
      return sum_column<T, 2>(product, tile, slot, in_block, col, sums);
    case 3:
      return sum_column<T, 3>(product, tile, slot, in_block, col, sums);
    case 4:
      return sum_column<T, 4>(product, tile, slot, in_block, col, sums);
    case 5:
      return sum_column<T, 5>(product, tile, slot, in_block, col, sums);
    case 6:
      return sum_column<T, 6>(product, tile, slot, in_block, col, sums);
    case 7:
      return sum_column<T, 7>(product, tile, slot, in_block, col, sums);
    default:
      return sum_column<T, 8>(product, tile, slot, in_block, col, sums);
  }
}

// C = alpha * sums + beta * c_in for column `col` of the tile and rows [row, row + rows); C has type T.
template <typename T>
void write_column(const Product& product, const Tile& tile, int64_t row, int rows, int col, const float* sums) {
  T* c = static_cast<T*>(product.c) + row * product.ldc + tile.col + col;
  const T* c_in = static_cast<const T*>(product.c_in) + row * product.ldc_in + tile.col + col;
  for (int i = 0; i < rows; ++i, c += product.ldc, c_in += product.ldc_in) {
    const float scaled = product.alpha * sums[i];
    store_one(c, product.beta == 0 ? scaled : multiply_add(product.beta, Isa::to_float(*c_in), scaled));
  }
}

inline void write_column(const Product& product, const Tile& tile, int64_t row, int rows, int col, const float* sums) {
  switch (product.dtype_c) {
    case SPARSEK_BF16:
      return write_column<Bf16>(product, tile, row, rows, col, sums);
    case SPARSEK_FP16:
      return write_column<Fp16>(product, tile, row, rows, col, sums);
    default:
      return write_column<float>(product, tile, row, rows, col, sums);
  }
}

}  // namespace
}  // namespace sparsek::cpu
