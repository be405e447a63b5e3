// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plan/bsr_index.h"
#include "plan/plan.h"

namespace sparsek::cuda {

// How many CTAs, a power of two and at most `most`, share each tile along K, where there are so few tiles that most of
// the `ctas` which the device runs at once would have none: an SM takes in only so much at a time. 1 where there are
// tiles enough, or where the parts would be too short. Where it is more, no worker has more than one tile.
int32_t choose_cluster(const BsrShape& matrix, const PlanShape& shape, int32_t most, int32_t ctas);

// The same for so many tiles, of so many elements of A each on average.
int32_t cluster_for(double tiles, double elements, int32_t most, int32_t ctas);

}  // namespace sparsek::cuda
