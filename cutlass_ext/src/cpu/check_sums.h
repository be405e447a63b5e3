// SPDX-License-Identifier: Apache-2.0
// The sums of the check: sum a b and sum |a| |b| in fp64, straight from the BSR arrays. Shares nothing with the plan
// or the kernels. Plain data without inline functions, as the implementations are compiled for different instruction
// sets; all of them give the same bits, because the product of two fp32 numbers is exact in fp64.
#pragma once

#include <cstdint>

#include "sparsek.h"

namespace sparsek::cpu {

// Extents of one panel of C.
constexpr int kPanelRows = 64;
constexpr int kPanelCols = 128;
constexpr int kPanelDepth = 128;  // products summed between two visits to the sums

// A panel's buffers, 64-byte aligned.
struct PanelBuffers {
  double* sum;        // (kPanelRows, kPanelCols):(kPanelCols, 1), result: sum a b
  double* magnitude;  // the same shape, result: sum |a| |b|
  double* a;          // (kPanelRows, kPanelDepth):(kPanelDepth, 1), scratch
  double* b;          // (kPanelDepth, kPanelCols):(kPanelCols, 1), scratch
};

// Rows [in_block, in_block + rows) of a block row, columns [col, col + cols) of C.
struct Panel {
  int64_t block_row, in_block;
  int rows;
  int64_t col;
  int cols;
};

// B, (K, N):(ld, 1).
struct DenseB {
  const void* data;
  int64_t ld;
  int32_t dtype;  // sparsek_dtype: A's or, where that has 16 bits, SPARSEK_FP32
};

// Computes sum and magnitude of the panel; the matrix must have been checked. Elements of the buffers beyond the
// panel's rows and columns are undefined.
using SumFunction = void (*)(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers);

void sum_panel_avx512(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers);
void sum_panel_avx2(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers);
void sum_panel_generic(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers);

}  // namespace sparsek::cpu
