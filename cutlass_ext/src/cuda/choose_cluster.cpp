// SPDX-License-Identifier: Apache-2.0
#include "cuda/choose_cluster.h"

namespace sparsek::cuda {

double unevenness(const BsrShape& matrix, int64_t longest_row) {
  if (matrix.nnzb == 0) return 1;
  return static_cast<double>(longest_row) * matrix.block_rows / static_cast<double>(matrix.nnzb);
}

int32_t choose_cluster(const BsrShape& matrix, int64_t longest_row, const PlanShape& shape, int32_t most,
                       int32_t ctas) {
  const int64_t tiles = count_tiles(matrix.rows, shape);
  if (tiles == 0) return 1;
  const double groups = static_cast<double>((matrix.rows + shape.tile_m - 1) / shape.tile_m);
  const double elements = static_cast<double>(matrix.nnzb) * matrix.block_m * matrix.block_k / groups;
  return cluster_for({static_cast<double>(tiles), elements, unevenness(matrix, longest_row), shape.tile_n}, most, ctas);
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
