// SPDX-License-Identifier: Apache-2.0
// The panel sums on vectors of an instruction set. Included once by each check_sums_*.cpp, which defines `Lanes`
// before it. Everything is in an anonymous namespace, and no template of the standard library is used, so that code for
// other machines gets no wide instructions.
#pragma once

#include "cpu/check_sums.h"
#include "cpu/check_values.h"

namespace sparsek::cpu {
namespace {

constexpr int kTogetherRows = 4;     // rows summed in registers at once
constexpr int kTogetherVectors = 2;  // vectors of columns summed in registers at once
static_assert(kPanelRows % kTogetherRows == 0 && kPanelCols % (kTogetherVectors * Lanes::kCount) == 0,
              "registers must cut a panel evenly");

// Adds `depth` products to the sums of kRows rows and kTogetherVectors vectors of columns.
template <int kRows>
void add_products(const PanelBuffers& buffers, int row, int col, int depth) {
  using Vector = Lanes::Vector;
  double* const sums = buffers.sum + row * kPanelCols + col;
  double* const magnitudes = buffers.magnitude + row * kPanelCols + col;
  Vector sum[kRows][kTogetherVectors], magnitude[kRows][kTogetherVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kTogetherVectors; ++j) {
      sum[i][j] = Lanes::load(sums + i * kPanelCols + j * Lanes::kCount);
      magnitude[i][j] = Lanes::load(magnitudes + i * kPanelCols + j * Lanes::kCount);
    }
  }
  const double* const a = buffers.a + row * kPanelDepth;
  const double* b = buffers.b + col;
  for (int k = 0; k < depth; ++k, b += kPanelCols) {
    Vector value[kTogetherVectors], absolute[kTogetherVectors];
    for (int j = 0; j < kTogetherVectors; ++j) {
      value[j] = Lanes::load(b + j * Lanes::kCount);
      absolute[j] = Lanes::absolute(value[j]);
    }
    for (int i = 0; i < kRows; ++i) {
      const Vector factor = Lanes::broadcast(a[i * kPanelDepth + k]);
      const Vector absolute_factor = Lanes::absolute(factor);
      for (int j = 0; j < kTogetherVectors; ++j) {
        sum[i][j] = Lanes::multiply_add(factor, value[j], sum[i][j]);
        magnitude[i][j] = Lanes::multiply_add(absolute_factor, absolute[j], magnitude[i][j]);
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kTogetherVectors; ++j) {
      Lanes::store(sums + i * kPanelCols + j * Lanes::kCount, sum[i][j]);
      Lanes::store(magnitudes + i * kPanelCols + j * Lanes::kCount, magnitude[i][j]);
    }
  }
}

inline void add_gathered(const PanelBuffers& buffers, int rows, int cols, int depth) {
  for (int col = 0; col < cols; col += kTogetherVectors * Lanes::kCount) {
    int row = 0;
    for (; row + kTogetherRows <= rows; row += kTogetherRows) {
      add_products<kTogetherRows>(buffers, row, col, depth);
    }
    for (; row < rows; ++row) add_products<1>(buffers, row, col, depth);
  }
}

template <int kDtype>
void widen(const typename Element<kDtype>::Stored* from, int count, double* to) {
  for (int i = 0; i < count; ++i) to[i] = Element<kDtype>::value(from[i]);
}

template <int kDtypeA, int kDtypeB, typename Index>
void sum_panel(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers) {
  using StoredA = typename Element<kDtypeA>::Stored;
  using StoredB = typename Element<kDtypeB>::Stored;
  for (int i = 0; i < panel.rows * kPanelCols; ++i) buffers.sum[i] = buffers.magnitude[i] = 0;

  const Index* const row_ptr = static_cast<const Index*>(a.row_ptr);
  const Index* const col_idx = static_cast<const Index*>(a.col_idx);
  const StoredA* const values = static_cast<const StoredA*>(a.values);
  const StoredB* const dense = static_cast<const StoredB*>(b.data);
  int depth = 0;
  for (int64_t block = row_ptr[panel.block_row]; block < row_ptr[panel.block_row + 1]; ++block) {
    const StoredA* const rows = values + (block * a.block_m + panel.in_block) * a.block_k;
    const int64_t first = col_idx[block] * a.block_k;  // row of B for column 0 of the block
    const int64_t width = a.cols - first < a.block_k ? a.cols - first : a.block_k;
    for (int64_t k = 0; k < width;) {
      const int room = kPanelDepth - depth;
      const int count = width - k < room ? static_cast<int>(width - k) : room;
      for (int i = 0; i < panel.rows; ++i) {
        widen<kDtypeA>(rows + i * a.block_k + k, count, buffers.a + i * kPanelDepth + depth);
      }
      for (int j = 0; j < count; ++j) {
        widen<kDtypeB>(dense + (first + k + j) * b.ld + panel.col, panel.cols, buffers.b + (depth + j) * kPanelCols);
      }
      k += count;
      depth += count;
      if (depth == kPanelDepth) {
        add_gathered(buffers, panel.rows, panel.cols, depth);
        depth = 0;
      }
    }
  }
  add_gathered(buffers, panel.rows, panel.cols, depth);
}

template <int kDtypeA, int kDtypeB>
void sum_panel_of(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers) {
  if (a.index_type == SPARSEK_INT64) {
    sum_panel<kDtypeA, kDtypeB, int64_t>(a, b, panel, buffers);
  } else {
    sum_panel<kDtypeA, kDtypeB, int32_t>(a, b, panel, buffers);
  }
}

inline void sum_panel_of_any(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers) {
  const bool wide = b.dtype == SPARSEK_FP32;
  if (a.dtype == SPARSEK_FP32) {
    sum_panel_of<SPARSEK_FP32, SPARSEK_FP32>(a, b, panel, buffers);
  } else if (a.dtype == SPARSEK_BF16) {
    wide ? sum_panel_of<SPARSEK_BF16, SPARSEK_FP32>(a, b, panel, buffers)
         : sum_panel_of<SPARSEK_BF16, SPARSEK_BF16>(a, b, panel, buffers);
  } else {
    wide ? sum_panel_of<SPARSEK_FP16, SPARSEK_FP32>(a, b, panel, buffers)
         : sum_panel_of<SPARSEK_FP16, SPARSEK_FP16>(a, b, panel, buffers);
  }
}

}  // namespace
}  // namespace sparsek::cpu
