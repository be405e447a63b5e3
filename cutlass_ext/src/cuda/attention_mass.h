// SPDX-License-Identifier: Apache-2.0
// How much of the weights of attention each block has. A kernel of the form of those of gradients, of queries, writes
// the sums of cells, 16 queries by as many keys as a box of its steps has (64 where steps are units), and another one
// adds these up to blocks. So sums have the same order each time.
#pragma once

#include "cuda/attention_backward.h"

namespace sparsek::cuda {

struct AttentionMassArgs {
  AttentionMassCells cells;
  float* mass;                       // (heads, query_blocks, key_blocks)
  int32_t heads;                     // batch * heads_q
  int32_t query_blocks, key_blocks;  // of a head
  int32_t rows, columns;             // of cells, of a block
};

struct AttentionMassOps {
  cudaError_t (*prepare)();
  // args.mass.sums are cells.
  cudaError_t (*cells)(const AttentionGradientArgs& args, cudaStream_t stream);
};

// For heads of at most so many columns, of lists in pieces or in units; of 256 in pieces.
AttentionMassOps attention_mass_64(sparsek_dtype dtype, bool pieces);
AttentionMassOps attention_mass_128(sparsek_dtype dtype, bool pieces);
AttentionMassOps attention_mass_256(sparsek_dtype dtype);

cudaError_t prepare_mass_sums();
cudaError_t sum_mass(const AttentionMassArgs& args, cudaStream_t stream);

}  // namespace sparsek::cuda
