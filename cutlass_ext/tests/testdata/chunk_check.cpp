// SPDX-License-Identifier: Apache-2.0
// Makes plans with chunks of random patterns, also with rows far longer than the others, and requires of each what its
// kernel relies on: chunks follow each other and have every block row and every block once; short rows are whole; no
// chunk has much more than its share. Prints the first difference and exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "plan/plan.h"
#include "random_index.h"

namespace {

using sparsek::BsrIndex;
using sparsek::Plan;
using sparsek::PlanShape;
using sparsek::RowChunk;

#define REQUIRE(condition)                                                                                            \
  do {                                                                                                                \
    if (!(condition)) {                                                                                               \
      std::printf("line %d: %s: %d block rows, %lld blocks, %d chunks, rows up to %lld whole, chunk %zu\n", __LINE__, \
                  #condition, index.block_rows, static_cast<long long>(index.nnzb), shape.chunks,                     \
                  static_cast<long long>(shape.longest_whole), at);                                                   \
      std::exit(1);                                                                                                   \
    }                                                                                                                 \
  } while (0)

void check_plan(const BsrIndex& index, const PlanShape& shape) {
  size_t at = 0;
  const Plan plan = sparsek::make_plan(index, shape);
  REQUIRE(plan.tiles.empty() && plan.row_ptr == index.row_ptr && plan.entry_block == index.block_idx);
  REQUIRE(plan.chunks.size() == static_cast<size_t>(shape.chunks));
  for (size_t e = 0; e < plan.entry_k.size(); ++e) REQUIRE(plan.entry_k[e] == index.col_idx[e] * index.block_k);
  const int64_t share = (index.nnzb + index.block_rows) / shape.chunks + 1;
  int32_t row = 0, entry = 0;  // the next ones
  for (; at < plan.chunks.size(); ++at) {
    const RowChunk& chunk = plan.chunks[at];
    const bool in_place = index.block_idx.empty();
    REQUIRE((chunk.entry_end >= 0) == in_place);
    const int32_t end = in_place ? chunk.entry_end : ~chunk.entry_end;
    REQUIRE(chunk.entry_begin == entry && end >= entry);
    entry = end;
    // The row in which the chunk before ended is this one's first, and no other row is in both.
    const bool begun = row > 0 && chunk.entry_begin < index.row_ptr[row];
    REQUIRE(chunk.row_begin == (begun ? row - 1 : row) && chunk.row_end >= row);
    if (begun) REQUIRE(index.row_ptr[row] - index.row_ptr[row - 1] > shape.longest_whole);
    row = chunk.row_end;
    REQUIRE(row <= index.block_rows);
    // All but the last row end here.
    if (row > chunk.row_begin) REQUIRE(index.row_ptr[row - 1] <= end && (row == 1 || index.row_ptr[row - 1] <= end));
    REQUIRE(end <= index.row_ptr[row]);
    const int64_t work = end - chunk.entry_begin + chunk.row_end - chunk.row_begin;
    REQUIRE(work <= share + shape.longest_whole + 2);
  }
  REQUIRE(row == index.block_rows && entry == index.nnzb);
}

}  // namespace

int main() {
  int cut = 0;
  for (int round = 0; round < 3000; ++round) {
    BsrIndex index = random_index();
    if (index.block_rows == 0) continue;
    if (round % 3 == 0) {
      index.block_idx.resize(static_cast<size_t>(index.nnzb));
      std::iota(index.block_idx.rbegin(), index.block_idx.rend(), 0);
    }
    PlanShape shape;
    shape.n = 1;
    shape.tile_m = index.block_m;
    shape.tile_n = 8;
    shape.chunks = draw(1, draw(0, 1) ? 20 : static_cast<int32_t>(index.nnzb) + index.block_rows);
    shape.longest_whole = draw(0, 50);
    check_plan(index, shape);
    const Plan plan = sparsek::make_plan(index, shape);
    for (const RowChunk& chunk : plan.chunks) {
      cut += chunk.row_begin < index.block_rows && chunk.entry_begin > index.row_ptr[chunk.row_begin];
    }
  }
  if (cut == 0) {
    std::printf("no row was cut\n");
    return 1;
  }
  return 0;
}
