// SPDX-License-Identifier: Apache-2.0
#include "cuda/choose_cluster.h"

namespace sparsek::cuda {

double unevenness(const BsrShape& matrix, int64_t longest_row) {
  if (matrix.nnzb == 0) return 1;
  return static_cast<double>(longest_row) * matrix.block_rows / static_cast<double>(matrix.nnzb);
}

namespace {

SharedTiles tiles_of(const BsrShape& matrix, int64_t longest_row, const PlanShape& shape) {
  const double groups = static_cast<double>((matrix.rows + shape.tile_m - 1) / shape.tile_m);
  const double elements = static_cast<double>(matrix.nnzb) * matrix.block_m * matrix.block_k / groups;
  return {static_cast<double>(count_tiles(matrix.rows, shape)), elements, unevenness(matrix, longest_row),
          shape.tile_n};
}

}  // namespace

int32_t choose_cluster(const BsrShape& matrix, int64_t longest_row, const PlanShape& shape, int32_t most,
                       int32_t ctas) {
  if (count_tiles(matrix.rows, shape) == 0) return 1;
  return cluster_for(tiles_of(matrix, longest_row, shape), most, ctas);
}

int32_t choose_neighbours(const BsrShape& matrix, int64_t longest_row, const PlanShape& shape, int32_t most,
                          int32_t ctas) {
  // docs/notes/blocks-kernel.md, "Two CTAs share A".
  constexpr double kLeastTiles = 8, kLeastElements = 16 * 64 * 64, kUneven = 3;
  if (count_tiles(matrix.rows, shape) == 0) return 1;
  const SharedTiles tiles = tiles_of(matrix, longest_row, shape);
  const bool pays = tiles.count >= kLeastTiles * ctas && tiles.elements >= kLeastElements && tiles.unevenness < kUneven;
  return pays ? most : 1;
}

int32_t cluster_for(const SharedTiles& tiles, int32_t most, int32_t ctas) {
  // The minimum of elements of A in a part: reading fewer takes less time than adding the parts' sums up.
  constexpr double kLeastElements = 4 * 64 * 64;
  // The CTAs of a cluster need SMs of one GPC, where those that are left over stay empty: of 66 clusters of 4 that an
  // H100 has SMs for, 62 run at once (cudaOccupancyMaxActiveClusters). Others begin when the first end, with the
  // shortest tiles; where all are as long, that doubles the time. Beside the CTAs of the kernel for 16 columns there is
  // room for as many more (kLaunches in skinny.cuh).
  constexpr double kShareOfFours = 7. / 8, kUneven = 1.5;
  const bool as_many = tiles.tile_n <= 16 || tiles.unevenness >= kUneven;
  const double fours = as_many ? ctas : kShareOfFours * ctas;
  const auto fits = [&](int32_t cluster) { return tiles.count * cluster <= (cluster < 4 ? ctas : fours); };
  int32_t cluster = 1;
  while (cluster * 2 <= most && fits(cluster * 2) && tiles.elements >= kLeastElements * cluster * 2) cluster *= 2;
  return cluster;
}

}  // namespace sparsek::cuda
