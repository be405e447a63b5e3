// SPDX-License-Identifier: Apache-2.0
// Attention's forward pass for heads of at most 64 columns by two pairs of warpgroups: cuda/attention_pairs.cuh.
#pragma once

#include "cuda/attention.h"

namespace sparsek::cuda {

// From how many tiles for each SM on pairs are faster. A tile by itself takes longer in a pair, so where few follow
// each other, the last ones end later (docs/notes/attention-forward.md).
constexpr int kPairTiles = 4;

AttentionForwardOps attention_pairs_64(sparsek_dtype dtype);

}  // namespace sparsek::cuda
