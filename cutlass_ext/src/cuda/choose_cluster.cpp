// SPDX-License-Identifier: Apache-2.0
#include "cuda/choose_cluster.h"

namespace sparsek::cuda {

int32_t choose_cluster(const BsrShape& matrix, const PlanShape& shape, int32_t most, int32_t ctas) {
  const int64_t tiles = count_tiles(matrix.rows, shape);
  if (tiles == 0) return 1;
  const double groups = static_cast<double>((matrix.rows + shape.tile_m - 1) / shape.tile_m);
  const double elements = static_cast<double>(matrix.nnzb) * matrix.block_m * matrix.block_k / groups;
  return cluster_for(static_cast<double>(tiles), elements, most, ctas);
}

int32_t cluster_for(double tiles, double elements, int32_t most, int32_t ctas) {
  // The minimum of elements of A in a part: reading fewer takes less time than adding the parts' sums up.
  constexpr double kLeastElements = 4 * 64 * 64;
  int32_t cluster = 1;
  while (cluster * 2 <= most && tiles * cluster * 2 <= ctas && elements >= kLeastElements * cluster * 2) cluster *= 2;
  return cluster;
}

}  // namespace sparsek::cuda
