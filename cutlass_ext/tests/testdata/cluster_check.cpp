// SPDX-License-Identifier: Apache-2.0
// Tiles that several CTAs share: the parts of a tile are the tile, and they are shared only where every worker has one
// tile at most, since the sums of a second one would find the place of the first taken.
// Prints the first difference and exits with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "cuda/choose_cluster.h"
#include "cuda/worker_count.h"
#include "plan/tile_part.h"

namespace {

using sparsek::BsrIndex;
using sparsek::Plan;
using sparsek::PlanShape;
using sparsek::WorkTile;

std::mt19937 random_bits(5);
int32_t draw(int32_t low, int32_t high) { return std::uniform_int_distribution<int32_t>(low, high)(random_bits); }

#define REQUIRE(condition)                                \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      std::exit(1);                                       \
    }                                                     \
  } while (0)

void check_parts() {
  for (int i = 0; i < 2000; ++i) {
    const WorkTile tile = {draw(0, 9), draw(0, 9), draw(0, 1000), i == 0 ? INT32_MAX - 1000 : draw(0, 40)};
    const int32_t parts = 1 << draw(0, 3);
    int32_t next = tile.entry_begin, least = INT32_MAX, most = 0;
    for (int32_t part = 0; part < parts; ++part) {
      const WorkTile one = sparsek::tile_part(tile, part, parts);
      REQUIRE(one.m_tile == tile.m_tile && one.n_tile == tile.n_tile && one.entry_begin == next);
      next += one.entry_count;
      least = std::min(least, one.entry_count);
      most = std::max(most, one.entry_count);
    }
    REQUIRE(next == tile.entry_begin + tile.entry_count);
    REQUIRE(least >= 0 && most - least <= 1);
  }
}

BsrIndex random_index() {
  constexpr int32_t kHeights[] = {16, 48, 64, 128};
  BsrIndex index;
  index.block_m = kHeights[draw(0, 3)];
  index.block_k = 16 * draw(1, 8);
  index.block_rows = draw(0, 90);
  index.rows = int64_t{index.block_m} * index.block_rows;
  index.block_cols = draw(1, 200);
  index.cols = int64_t{index.block_k} * index.block_cols;
  index.row_ptr.push_back(0);
  for (int32_t row = 0; row < index.block_rows; ++row) {
    const int32_t count = draw(0, index.block_cols);
    for (int32_t col = 0; col < count; ++col) index.col_idx.push_back(col);
    index.row_ptr.push_back(static_cast<int32_t>(index.col_idx.size()));
  }
  index.nnzb = static_cast<int64_t>(index.col_idx.size());
  return index;
}

void check_one_tile_a_worker() {
  constexpr int32_t kCtas = 264;
  int shared = 0;
  for (int i = 0; i < 1000; ++i) {
    const BsrIndex index = random_index();
    PlanShape shape;
    shape.tile_m = shape.tile_n = 64;
    shape.n = draw(0, 200);
    shape.tile_cost = 2.4 * 64 / index.block_k;
    shape.any_rows = true;
    shape.panels_in_flight = 0;
    const int32_t most = 1 << draw(0, 3);
    const int32_t cluster = sparsek::cuda::choose_cluster(index, draw(0, index.block_cols), shape, most, kCtas);
    REQUIRE(cluster >= 1 && cluster <= most && (cluster & (cluster - 1)) == 0);
    if (cluster == 1) continue;
    ++shared;
    shape.workers = kCtas / cluster;
    const Plan plan = sparsek::make_plan(index, shape);
    REQUIRE(static_cast<int64_t>(plan.tiles.size()) * cluster <= kCtas);
  }
  REQUIRE(shared > 100);
}

// Where there are tiles enough, or there is little to read, a tile is one CTA's.
void check_choices() {
  struct Case {
    int64_t rows, nnzb;
    int32_t most, want;
    int32_t tile_n = 16;
    int64_t longest_row = 26;  // all rows have as many
  };
  // Blocks of 64; tiles of 64 rows.
  for (const Case& c : {Case{16384, 6656, 4, 1}, Case{8192, 3328, 4, 2}, Case{4096, 1664, 4, 4}, Case{64, 26, 4, 4},
                        Case{64, 26, 1, 1}, Case{64, 15, 4, 2}, Case{64, 7, 4, 1}, Case{64, 0, 4, 1}, Case{0, 0, 4, 1},
                        Case{4224, 1716, 4, 4}, Case{4225, 1716, 4, 2},
                        // Of tiles of 64 columns, fewer clusters of 4 run at once than there are SMs for.
                        Case{4096, 1664, 4, 2, 64}, Case{4096, 1664, 4, 4, 64, 39}, Case{4096, 1664, 4, 2, 64, 38},
                        Case{3648, 1664, 4, 4, 64}, Case{3712, 1664, 4, 2, 64}}) {
    sparsek::BsrShape matrix;
    matrix.rows = c.rows;
    matrix.block_m = matrix.block_k = 64;
    matrix.block_rows = static_cast<int32_t>((c.rows + 63) / 64);
    matrix.nnzb = c.nnzb;
    PlanShape shape;
    shape.tile_m = 64;
    shape.tile_n = shape.n = c.tile_n;
    REQUIRE(sparsek::cuda::choose_cluster(matrix, c.longest_row, shape, c.most, 264) == c.want);
  }
}

void check_workers() {
  using sparsek::cuda::worker_count;
  for (const int32_t tiles : {0, 1, 263, 264}) {
    for (const int32_t rounds : {1, 2, INT32_MAX}) REQUIRE(worker_count(tiles, 264, rounds) == tiles);
  }
  for (const int32_t tiles : {265, 528, 529, 1 << 20, INT32_MAX}) {
    REQUIRE(worker_count(tiles, 264, 1) == 264);
    REQUIRE(worker_count(tiles, 264, 2) == (tiles <= 528 ? tiles : 264));
    REQUIRE(worker_count(tiles, 264, INT32_MAX) == tiles);
  }
  using sparsek::cuda::late_workers;
  REQUIRE(late_workers(8 * 132, 132) == 16);
  REQUIRE(late_workers(8 * 132 - 1, 132) == 0);  // few tiles each
  REQUIRE(late_workers(INT32_MAX, INT32_MAX / 8) == INT32_MAX / 8 / 8);
  for (const int32_t workers : {1, 7, 8, 15, 16}) REQUIRE(late_workers(1 << 20, workers) == workers / 8);
}

}  // namespace

int main() {
  check_workers();
  check_parts();
  check_choices();
  check_one_tile_a_worker();
}
