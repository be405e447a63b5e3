// SPDX-License-Identifier: Apache-2.0
#include "cpu/cost_model.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/kernel.h"
#include "cpu/plan_shape.h"
#include "cpu/row_rule.h"

namespace sparsek::cpu {
namespace {

// Nanoseconds of what a block row consists of (cpu/row_kernel.h).
struct RowCosts {
  double walk;      // each block, for each part of its rows and each strip of columns
  double line;      // each column of those
  double load;      // each vector of B
  double multiply;  // each multiplication of an element of A by a vector of B
  double element;   // each element of a block that is converted to the type of the sums
  double row;       // each row of C
  double store;     // each vector of C
};

// The same of a tile (cpu/tile_kernel.h).
struct TileCosts {
  double block;     // each block
  double element;   // each element of a block: its conversion to fp32
  double line;      // each column of a block: the address of its row of B
  double load;      // each vector of B
  double multiply;  // each multiplication of an element of A by a vector of B
  double rest;      // each element of B behind the last whole vector of its row
  double row;       // each row of C
  double store;     // each vector of C
};

struct Costs {
  int vector_bytes;
  int most_rows;             // rows summed at once
  int (*most_vectors)(int);  // vectors of a strip of so many rows
  RowCosts rows;
  TileCosts tiles;
};

int of_32_registers(int rows) { return rows <= 4 ? 6 : 3; }
int of_16_registers(int rows) { return rows <= 2 ? 4 : rows == 3 ? 3 : 2; }

// scripts/fit_cpu_cost_model.py prints them. The rows of C by kGeneric were set so that short rows are predicted as
// well.
constexpr Costs kAvx512 = {
    64, 8, of_32_registers, {0, 0.1, 0.67, 0.2, 0.12, 0.13, 4.6}, {66, 0, 0, 0, 0.32, 0, 10, 2.9}};
constexpr Costs kAvx2 = {
    32, 6, of_16_registers, {0, 0.62, 0.36, 0.12, 0.78, 1.2, 3.1}, {6.5, 0, 0, 0, 0.3, 0.001, 18, 1.7}};
constexpr Costs kGeneric = {
    16, 6, of_16_registers, {0, 1.2, 0.019, 0.25, 0.37, 1.2, 1.5}, {0, 0, 0, 0, 0.51, 0.001, 27, 0.66}};

// Nanoseconds of one column where vectors lie along rows (cpu/dot_kernel.h), with any instruction set that has it: each
// block, each byte of its values as they are summed, and each row. By scripts/fit_cpu_cost_model.py's products with one
// column.
struct DotCosts {
  double block, byte, row;
};
constexpr DotCosts kDots = {0.9, 0.0215, 1};

const Costs& costs_of(const Kernel& kernel) {
  if (std::strcmp(kernel.isa, "avx512") == 0) return kAvx512;
  return std::strcmp(kernel.isa, "avx2") == 0 ? kAvx2 : kGeneric;
}

constexpr double kCall = 1e-6;  // seconds of a product without work
constexpr double kWake = 5e-6;  // and of waking the other threads

double as_double(int64_t count) { return static_cast<double>(count); }

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

double nanoseconds_of_rows(const Costs& cost, const BsrShape& matrix, OperandTypes types, int64_t n, int64_t panels) {
  const auto sum_bytes = static_cast<int>(types.b == SPARSEK_FP64 ? sizeof(double) : sizeof(float));
  const int lanes = cost.vector_bytes / sum_bytes;
  const bool converts = dtype_bytes(types.a) != sum_bytes;
  const int64_t pieces = ceil_div(matrix.block_m, kRowsAtOnce), height = ceil_div(matrix.block_m, pieces);
  const int64_t parts = ceil_div(height, cost.most_rows), vectors = ceil_div(n, lanes);
  const int64_t strips = ceil_div(vectors, cost.most_vectors(static_cast<int>(ceil_div(height, parts))));
  const double width = matrix.block_k, elements = static_cast<double>(matrix.block_m) * width;
  const double of_block =
      as_double(pieces * parts) * (as_double(strips) * (cost.rows.walk + width * cost.rows.line) +
                                   as_double(vectors) * width * cost.rows.load) +
      elements * (as_double(vectors) * cost.rows.multiply + (converts ? as_double(panels) * cost.rows.element : 0));
  const double of_row = as_double(panels) * cost.rows.row + as_double(vectors) * cost.rows.store;
  return as_double(matrix.nnzb) * of_block + as_double(matrix.rows) * of_row;
}

double nanoseconds_of_dots(const BsrShape& matrix, sparsek_dtype dtype) {
  const double bytes = static_cast<double>(matrix.block_m) * matrix.block_k *
                       static_cast<double>(dtype == SPARSEK_FP64 ? sizeof(double) : sizeof(float));
  return as_double(matrix.nnzb) * (kDots.block + bytes * kDots.byte) + as_double(matrix.rows) * kDots.row;
}

double nanoseconds_of_tiles(const Costs& cost, const BsrShape& matrix, int64_t n, int64_t panels) {
  const auto lanes = cost.vector_bytes / static_cast<int64_t>(sizeof(float));
  const double vectors = as_double(ceil_div(n, lanes)), rest = as_double(n % lanes);
  const double width = matrix.block_k, elements = static_cast<double>(matrix.block_m) * width;
  const double of_block =
      as_double(panels) * (cost.tiles.block + elements * cost.tiles.element + width * cost.tiles.line) +
      width * (vectors * (cost.tiles.load + cost.tiles.multiply * matrix.block_m) + rest * cost.tiles.rest);
  const double of_row = as_double(panels) * cost.tiles.row + vectors * cost.tiles.store;
  return as_double(matrix.nnzb) * of_block + as_double(matrix.rows) * of_row;
}

}  // namespace

double predict(const Kernel& kernel, const BsrShape& matrix, OperandTypes types, int64_t n, int threads) {
  if (n == 0 || matrix.rows == 0) return kCall;
  const Costs& cost = costs_of(kernel);
  const PlanShape shape = choose_shape(matrix, types, n, threads);
  const int64_t panels = ceil_div(n, kTileCols);
  double nanoseconds;
  if (n == 1 && std::strcmp(kernel.isa, "generic") != 0) {
    nanoseconds = nanoseconds_of_dots(matrix, types.b);
  } else if (takes_rows(types, n, matrix.block_m)) {
    nanoseconds = nanoseconds_of_rows(cost, matrix, types, n, panels);
  } else {
    nanoseconds = nanoseconds_of_tiles(cost, matrix, n, panels);
  }
  return kCall + (shape.workers > 1 ? kWake : 0) + 1e-9 * nanoseconds / shape.workers;
}

// A block is the product of bm rows of X, which are as wide as a block of n columns, with bk columns of B.
double predict_blocks(const Kernel& kernel, const BsrShape& matrix, sparsek_dtype dtype, int64_t n, int threads) {
  if (n == 0 || matrix.nnzb == 0) return kCall;
  const PlanShape shape = choose_block_shape(matrix, n, threads);
  BsrShape of_x = matrix;
  of_x.block_k = static_cast<int32_t>(std::min<int64_t>(n, INT32_MAX));
  of_x.rows = matrix.nnzb * matrix.block_m;  // each block's rows are written
  const double nanoseconds =
      nanoseconds_of_rows(costs_of(kernel), of_x, {dtype, dtype}, matrix.block_k, ceil_div(matrix.block_k, kTileCols));
  return kCall + (shape.workers > 1 ? kWake : 0) + 1e-9 * nanoseconds / shape.workers;
}

}  // namespace sparsek::cpu
