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
//
// longest_row: blocks of the longest block row.
int32_t choose_cluster(const BsrShape& matrix, int64_t longest_row, const PlanShape& shape, int32_t most, int32_t ctas);

// The number of CTAs of a cluster, 1 or `most`, that compute neighbouring columns of each tile and load A once for all.
// shape: with the columns of one CTA. 1 where tiles are few, short or uneven: they become wider, and so fewer, and the
// ends of a cluster's CTAs are waited for.
int32_t choose_neighbours(const BsrShape& matrix, int64_t longest_row, const PlanShape& shape, int32_t most,
                          int32_t ctas);

// What choose_cluster goes by.
struct SharedTiles {
  double count;
  double elements;    // of A in a tile, on average
  double unevenness;  // see below
  int32_t tile_n;     // columns of a tile
};
int32_t cluster_for(const SharedTiles& tiles, int32_t most, int32_t ctas);

// Blocks of the longest block row / mean blocks of a block row; 1 without blocks.
double unevenness(const BsrShape& matrix, int64_t longest_row);

}  // namespace sparsek::cuda
