// SPDX-License-Identifier: Apache-2.0
// Kernels of SPARSEK_SDD: the blocks of act(alpha X Y + beta C) that an index names.
//
//   x   (M, n):(ldx, 1), or across: (M, n):(1, ldx)
//   y   (K, n):(ldy, 1), the columns of the right factor, or across: (K, n):(1, ldy)
//   c   (nnzb, bm, bk); what its blocks have beyond A becomes 0. Absent blocks are not touched.
//
// Sums are those of the products of one row of x and one row of y, in fp32 or, of fp64, in fp64. Their order depends on
// the kernel alone.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/index_verdict.h"
#include "cuda/launch_args.h"
#include "cuda/prepared.h"
#include "plan/bsr_index.h"
#include "sparsek.h"

namespace sparsek::cuda {

struct SampledArgs {
  CheckedIndex index;
  int64_t rows, cols, n, nnzb;  // nnzb: at most
  int32_t block_rows, block_m, block_k;
  const void *x, *y;
  int64_t ldx, ldy;
  bool x_across, y_across;
  void* c;
  bool whole_vectors;  // 8 elements of c, from a multiple of 8 on, begin at a multiple of 16 bytes
  Epilogue epilogue;   // c_in: (nnzb, bm, bk); without a bias
  int32_t workers;     // the most CTAs; 0: all

  // For sampled_wgmma: the work list of cuda/sampled_list.h, and how many CTAs there are.
  const int32_t *tiles, *tile_count;
  uint32_t* tiles_taken;  // (1), see collective/tile_queue.hpp
  int32_t tile_words, blocks_of_cell;
};

struct SampledOps {
  Prepared* prepared;
  cudaError_t (*prepare)();  // loads the kernel; before the first launch on a device, since a capture does not allow it
  cudaError_t (*launch)(const SampledArgs& args, cudaStream_t stream);
};

// bf16 and fp16 on tensor cores. Lines of x and y begin at multiples of 16 bytes.
// By wgmma, for cells of a width of 16, 32 or 64 (cuda/sampled_tile.h). x may lie across, and with a width of 64 y too.
SampledOps sampled_wgmma_16(sparsek_dtype dtype);
SampledOps sampled_wgmma_32(sparsek_dtype dtype);
SampledOps sampled_wgmma_64(sparsek_dtype dtype);
// By mma.sync: blocks of multiples of 16 x 8, up to 256 wide.
SampledOps sampled_mma(sparsek_dtype dtype, int32_t block_m);
// On ordinary cores, all blocks and types.
SampledOps sampled_simt(sparsek_dtype dtype, int32_t block_m);

// to[i] = i: block_idx of an index that names no blocks.
cudaError_t prepare_number_blocks();
cudaError_t number_blocks(int32_t* to, int64_t count, cudaStream_t stream);

}  // namespace sparsek::cuda
