// SPDX-License-Identifier: Apache-2.0
// What the CUDA back-end knows of a kernel. The table is generated from kernels.json.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/plan.h"
#include "sparsek.h"

namespace sparsek::cuda {

// What happens to a sum before it is C: act(alpha sum + beta C + bias), rounded to C's type. See cuda/epilogue.cuh.
struct Epilogue {
  float alpha, beta;  // beta = 0: C is not read
  const void* bias;   // of C's type: (M) or (N)
  sparsek_bias bias_kind;
  sparsek_activation activation;
  sparsek_dtype dtype_c;
};

// Where the parts of split tiles leave their sums: (parts, slabs, groups, 32 lanes), four sums of a lane together as
// mma_sync.cuh says of D. A slab is 16 rows of the tile, a group 8 of its columns; no group lies behind C.
struct PartSums {
  float4* sums;  // null: the plan has no parts
  int32_t slabs, groups;
};

// One multiply, as a kernel sees it. All pointers are device pointers.
struct LaunchArgs {
  int64_t rows, cols, n;  // M, K, N
  int32_t block_m, block_k;
  int64_t nnzb;
  const void* values;  // (nnzb, bm, bk)
  const void* b;       // (K, N):(ldb, 1)
  int64_t ldb;
  void* c;  // (M, N):(ldc, 1)
  int64_t ldc;
  Epilogue epilogue;

  const WorkTile* tiles;  // the plan, see plan/plan.h
  const int32_t* worker_begin;
  const int32_t* entry_col;
  const int32_t* entry_block;
  const int64_t* slot_row;
  int32_t slots;
  int32_t workers;  // CTAs, or clusters of `cluster` CTAs
  int32_t cluster;  // CTAs that share each tile along K; if more than one, no worker has more than one tile
  PartSums parts;

  unsigned long long* recomputed;  // counts what exact_rows.cuh computes again

  cudaStream_t stream;
};

struct KernelOps {
  // Before the first launch on a device, and for each plan: raises the shared-memory limit.
  cudaError_t (*prepare)();
  cudaError_t (*launch)(const LaunchArgs&);
  int ctas_per_sm;       // of the persistent grid
  bool tensor_cores;     // sums as they do, see unit_roundoff
  bool tma_b;            // B needs a 16-byte aligned address and pitch
  bool any_rows;         // takes any block rows into a row group
  int align_values;      // bytes to which A's values must be aligned
  bool any_epilogue;     // else C is of A's type, and there is neither a bias nor an activation
  int most_cluster = 1;  // CTAs that can share a tile
  // Takes parts of tiles: leaves their sums in LaunchArgs::parts. Calls allow_dependent_launch where there are any.
  bool may_split = false;
};

struct KernelDesc {
  const char* name;
  const char* family;  // what it is an instance of
  const char* why;
  sparsek_dtype dtype;
  int tile_m;  // 0: as tall as a block row
  int tile_n, tile_k, stages;
  int block_m;            // block heights served: this one,
  bool block_m_multiple;  // or every multiple of it
  int block_k_multiple;   // block widths served: multiples of this
  bool baseline;          // there to be compared with: only taken by name
  const KernelOps* ops;
};

extern const KernelDesc kKernels[];
extern const int kKernelCount;

}  // namespace sparsek::cuda
