// SPDX-License-Identifier: Apache-2.0
#include "cuda/choose_cluster.h"

namespace sparsek::cuda {

int32_t choose_cluster(const BsrShape& matrix, const PlanShape& shape, int32_t most, int32_t ctas) {
  const int64_t tiles = count_tiles(matrix.rows, shape);
  if (tiles == 0) return 1;
  const double groups = static_cast<double>((matrix.rows + shape.tile_m - 1) / shape.tile_m);
  const double elements = static_cast<double>(matrix.nnzb) * matrix.block_m * matrix.block_k / groups;
  return cluster_for(static_cast<double>(tiles), elements, most, ctas, shape.tile_n);
}

int32_t cluster_for(double tiles, double elements, int32_t most, int32_t ctas, int32_t tile_n) {
  // The minimum of elements of A in a part: reading fewer takes less time than adding the parts' sums up.
  constexpr double kLeastElements = 4 * 64 * 64;
  // The CTAs of a cluster need SMs of one GPC, where those that are left over stay empty: of 66 clusters of 4 that an
  // H100 has SMs for, 62 run at once (cudaOccupancyMaxActiveClusters). With one more than that, all would take twice
  // the time. Beside those of the kernel for 16 columns there is room for as many more (kLaunches in skinny.cuh).
  constexpr double kShareOfFours = 7. / 8;
  const double fours = tile_n <= 16 ? ctas : kShareOfFours * ctas;
  const auto fits = [&](int32_t cluster) { return tiles * cluster <= (cluster < 4 ? ctas : fours); };
  int32_t cluster = 1;
  while (cluster * 2 <= most && fits(cluster * 2) && elements >= kLeastElements * cluster * 2) cluster *= 2;
  return cluster;
}

}  // namespace sparsek::cuda
