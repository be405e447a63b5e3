// SPDX-License-Identifier: Apache-2.0
#include "cpu/plan_shape.h"

#include <algorithm>

#include "cpu/few_columns_rule.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

// Short block rows share a tile: neighbours tend to read the same rows of B, which are then still in the cache.
int32_t low_slots(int32_t block_m, int64_t n) {
  if (has_few_columns(n, block_m)) return 1;
  return block_m < 8 ? 4 : block_m <= 16 ? 2 : 1;
}

// The largest part, of at most kPieceRows rows, into which a tall block row can be cut evenly; the block itself where
// the parts would be too short to justify packing B for each.
int32_t part_rows(int32_t block_m) {
  constexpr int32_t kLeastRows = 32;
  for (int32_t rows = kPieceRows; rows >= kLeastRows; --rows) {
    if (block_m % rows == 0) return rows;
  }
  return block_m;
}

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace

PlanShape choose_shape(const BsrShape& matrix, int64_t n, int threads) {
  PlanShape shape;
  shape.n = n;
  shape.tile_m =
      matrix.block_m > kPieceRows ? part_rows(matrix.block_m) : matrix.block_m * low_slots(matrix.block_m, n);

  // Makes tiles narrower, still whole strips of each kernel, until each thread has a few.
  constexpr int kTilesPerThread = 4;
  const int64_t groups = ceil_div(matrix.rows, shape.tile_m);
  shape.tile_n = kTileCols;
  for (const int32_t tile_n : {kTileCols, kTileCols / 2, kTileCols / 3, kTileCols / 6}) {
    shape.tile_n = tile_n;
    if (groups * ceil_div(n, tile_n) >= static_cast<int64_t>(threads) * kTilesPerThread) break;
  }

  // Waking a thread costs about as much as this many products.
  constexpr double kProductsPerThread = 1 << 18;
  const double columns = static_cast<double>(n);
  const double products = static_cast<double>(matrix.nnzb) * matrix.block_m * matrix.block_k * columns;
  const double elements = static_cast<double>(matrix.rows) * columns;
  const double useful = std::max(products, elements) / kProductsPerThread;
  const double tiles = static_cast<double>(groups * ceil_div(n, shape.tile_n));
  shape.workers = static_cast<int32_t>(std::max(1.0, std::min({static_cast<double>(threads), useful, tiles})));

  // Writing an element of C costs about as much as this many products.
  constexpr double kProductsPerElement = 8;
  shape.tile_cost = kProductsPerElement / matrix.block_k;
  return shape;
}

}  // namespace sparsek::cpu
