// SPDX-License-Identifier: Apache-2.0
#include "cpu/cost_model.h"

#include <cstring>

#include "cpu/few_columns_rule.h"
#include "cpu/plan_shape.h"

namespace sparsek::cpu {
namespace {

// Nanoseconds of what a tile consists of (cpu/tile_kernel.h). Low blocks take most of their time in the first four.
struct Costs {
  double lanes;      // fp32 elements of a vector
  double block;      // each block
  double block_row;  // each row of a block
  double element;    // each element of a block: its conversion to fp32
  double line;       // each column of a block: the address of its row of B
  double load;       // each vector of B
  double multiply;   // each multiplication of an element of A by a vector of B
  double rest;       // each element of B behind the last whole vector of its row
  double row;        // each row of C
  double store;      // each vector of C
};

// scripts/fit_cpu_cost_model.py prints them.
constexpr Costs kAvx512 = {16, 14, 1.9, 0.13, 2.4, 0.19, 0.27, 0.77, 10.5, 2.5};
constexpr Costs kAvx2 = {8, 14, 2.0, 0.17, 0.78, 0.32, 0.15, 2.2, 10, 1.3};
constexpr Costs kGeneric = {4, 11, 2.1, 0.18, 0.69, 0.27, 0.24, 2.5, 7.7, 1.4};

const Costs& costs_of(const Kernel& kernel) {
  if (std::strcmp(kernel.isa, "avx512") == 0) return kAvx512;
  return std::strcmp(kernel.isa, "avx2") == 0 ? kAvx2 : kGeneric;
}

// Nanoseconds for few columns (cpu/few_columns.h), with any instruction set: for each block, and for each of its
// columns of C, in addition for each of its elements. By `sparsek run --threads 1 --n 1` to 3 on a processor with
// AVX-512: stencils of blocks 1, 3, 4 and 8, random patterns of blocks 3 to 64, of which the largest do not fit the
// caches.
struct FewColumnsCosts {
  double block, column, element;
};
constexpr FewColumnsCosts kFewColumns = {3, 1, 0.45};

constexpr double kCall = 1e-6;  // seconds of a product without work
constexpr double kWake = 5e-6;  // and of waking the other threads

}  // namespace

double predict(const Kernel& kernel, const BsrShape& matrix, int64_t n, int threads) {
  if (n == 0 || matrix.rows == 0) return kCall;
  const Costs& cost = costs_of(kernel);
  const PlanShape shape = choose_shape(matrix, n, threads);
  const auto seconds = [&](double nanoseconds) {
    return kCall + (shape.workers > 1 ? kWake : 0) + 1e-9 * nanoseconds / shape.workers;
  };
  if (has_few_columns(n, matrix.block_m)) {
    const double elements = static_cast<double>(matrix.block_m) * matrix.block_k;
    return seconds(
        static_cast<double>(matrix.nnzb) *
        (kFewColumns.block + static_cast<double>(n) * (kFewColumns.column + kFewColumns.element * elements)));
  }
  const auto lanes = static_cast<int64_t>(cost.lanes);
  const auto panels = static_cast<double>((n + shape.tile_n - 1) / shape.tile_n);
  const auto vectors = static_cast<double>((n + lanes - 1) / lanes);
  const auto rest = static_cast<double>(n % lanes);
  const double of_panel = cost.block + cost.block_row * matrix.block_m +
                          cost.element * matrix.block_m * static_cast<double>(matrix.block_k) +
                          cost.line * matrix.block_k;
  const double of_block =
      panels * of_panel + matrix.block_k * (vectors * (cost.load + cost.multiply * matrix.block_m) + rest * cost.rest);
  const double of_row = panels * cost.row + vectors * cost.store;
  return seconds(static_cast<double>(matrix.nnzb) * of_block + static_cast<double>(matrix.rows) * of_row);
}

}  // namespace sparsek::cpu
