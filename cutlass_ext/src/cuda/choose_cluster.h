// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/bsr_index.h"
#include "plan/plan.h"

namespace sparsek::cuda {

// The number of CTAs that share each tile along K, a power of two and at most `most`. It is above 1 where there are so
// few tiles that most of the `ctas` CTAs which the device runs at once would have none: the rate at which one SM loads
// is limited. 1 where there are enough tiles, or where the parts would be too short. Above 1, no worker has more than
// one tile.
int32_t choose_cluster(const BsrShape& matrix, const PlanShape& shape, int32_t most, int32_t ctas);

// The same for `tiles` tiles of tile_n columns, of `elements` elements of A each on average.
int32_t cluster_for(double tiles, double elements, int32_t most, int32_t ctas, int32_t tile_n);

}  // namespace sparsek::cuda
