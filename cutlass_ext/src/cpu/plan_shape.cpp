// SPDX-License-Identifier: Apache-2.0
#include "cpu/plan_shape.h"

#include <algorithm>

#include "cpu/kernel.h"
#include "cpu/row_rule.h"

namespace sparsek::cpu {
namespace {

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

// Tiles, or chunks of rows: what each thread takes until none is left.
void cut_into_tiles(const BsrShape& matrix, int64_t n, int threads, PlanShape& shape) {
  shape.tile_m = matrix.block_m > kPieceRows ? part_rows(matrix.block_m) : matrix.block_m;

  // Makes tiles narrower, still whole strips of each kernel, until each thread has a few.
  constexpr int kTilesPerThread = 4;
  const int64_t groups = ceil_div(matrix.rows, shape.tile_m);
  for (const int32_t tile_n : {kTileCols, kTileCols / 2, kTileCols / 3, kTileCols / 6}) {
    shape.tile_n = tile_n;
    if (groups * ceil_div(n, tile_n) >= static_cast<int64_t>(threads) * kTilesPerThread) break;
  }
}

void cut_into_chunks(const BsrShape& matrix, int64_t n, int threads, PlanShape& shape) {
  constexpr int64_t kChunksPerThread = 32;
  shape.tile_m = matrix.block_m;
  shape.chunks = static_cast<int32_t>(std::min<int64_t>(matrix.block_rows, threads * kChunksPerThread));
  shape.longest_whole = matrix.nnzb;  // no row is cut: the sums of an element are one chain
  const int64_t pieces = ceil_div(matrix.block_m, kRowsAtOnce);
  for (const int32_t tile_n : {kTileCols, kTileCols / 3, kTileCols / 6}) {
    shape.tile_n = tile_n;
    if (shape.chunks * pieces * ceil_div(n, tile_n) >= static_cast<int64_t>(threads) * 4) break;
  }
}

// No more workers than `products` products or `elements` elements of C keep busy.
int32_t count_workers(double products, double elements, int64_t tasks, int threads) {
  // Waking a thread costs about as much as this many products.
  constexpr double kProductsPerThread = 1 << 18;
  const double useful = std::max(products, elements) / kProductsPerThread;
  return static_cast<int32_t>(
      std::max(1.0, std::min({static_cast<double>(threads), useful, static_cast<double>(tasks)})));
}

}  // namespace

PlanShape choose_shape(const BsrShape& matrix, OperandTypes types, int64_t n, int threads) {
  PlanShape shape;
  shape.n = n;
  int64_t tasks = 0;
  if (takes_rows(types, n, matrix.block_m)) {
    cut_into_chunks(matrix, n, threads, shape);
    tasks = shape.chunks * ceil_div(matrix.block_m, kRowsAtOnce) * ceil_div(n, shape.tile_n);
  } else {
    cut_into_tiles(matrix, n, threads, shape);
    tasks = ceil_div(matrix.rows, shape.tile_m) * ceil_div(n, shape.tile_n);
  }

  const double columns = static_cast<double>(n);
  const double products = static_cast<double>(matrix.nnzb) * matrix.block_m * matrix.block_k * columns;
  shape.workers = count_workers(products, static_cast<double>(matrix.rows) * columns, tasks, threads);

  // Writing an element of C costs about as much as this many products.
  constexpr double kProductsPerElement = 8;
  shape.tile_cost = kProductsPerElement / matrix.block_k;
  return shape;
}

PlanShape choose_block_shape(const BsrShape& matrix, int64_t n, int threads) {
  constexpr int64_t kChunksPerThread = 32;
  PlanShape shape;
  shape.n = n;
  shape.tile_m = matrix.block_m;
  shape.tile_n = matrix.block_k;
  shape.chunks = static_cast<int32_t>(std::clamp<int64_t>(matrix.nnzb, 1, threads * kChunksPerThread));
  shape.longest_whole = std::max<int64_t>(1, matrix.nnzb / shape.chunks);  // a row may be cut between blocks
  const double elements = static_cast<double>(matrix.nnzb) * matrix.block_m * matrix.block_k;
  const int64_t tasks = shape.chunks * ceil_div(matrix.block_m, kRowsAtOnce);
  shape.workers = count_workers(elements * static_cast<double>(n), elements, tasks, threads);
  return shape;
}

}  // namespace sparsek::cpu
