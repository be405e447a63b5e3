// SPDX-License-Identifier: Apache-2.0
// What a kernel family offers the host, and gets with each product. Kernels include this and not sparsek.h, so that a
// change of the C ABI compiles no kernel again; cuda/abi_types.h translates.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/work_tile.h"

namespace sparsek::cuda {

struct RowChunks;

enum class ElementType : int32_t { kBf16 = 1, kFp16 = 2, kFp32 = 3 };
enum class BiasKind : int32_t { kNone, kRow, kColumn };
enum class Activation : int32_t { kNone, kRelu, kGelu, kSilu };

// The epilogue: act(alpha sum + beta c_in + bias), rounded to C's type. See cuda/epilogue.cuh.
struct Epilogue {
  float alpha, beta;                        // beta = 0: c_in is not read
  const float *alpha_device, *beta_device;  // factors of alpha and beta that are read on the device; null: 1
  const void* c_in;                         // of C's type: (M, N):(ldc_in, 1); may be C
  int64_t ldc_in;                           // 0: one row for all
  const void* bias;                         // of C's type: (M) or (N)
  BiasKind bias_kind;
  Activation activation;
  ElementType dtype_c;
  bool input_across;  // ldc_in is 0, and c_in a line across those of C: one column for all where C is N-major
};

// The sums of the parts of split tiles: (parts, slabs, groups, 32 lanes), row-major, four sums of a lane together in
// the layout of D in mma_sync.cuh. A slab is 16 rows of the tile, a group 8 of its columns; groups beyond C are left
// out.
struct PartSums {
  float4* sums;  // null: the plan has no parts
  int32_t slabs, groups;

  constexpr int64_t bytes_of_part() const { return int64_t{4 * sizeof(float)} * 32 * slabs * groups; }
};

// The arguments of one product. All pointers are device pointers.
struct LaunchArgs {
  int64_t rows, cols, n;  // M, K, N; tiles may lie beyond N, and are left out then
  int32_t block_m, block_k;
  int64_t nnzb;
  const void* values;  // (nnzb, bm, bk); (nnzb, bk, bm) where a_m_major
  const void* b;       // (K, N):(ldb, 1), or :(1, ldb) where b_k_major
  int64_t ldb;
  void* c;  // (M, N):(ldc, 1), or :(1, ldc) where c_m_major, and c_in likewise
  int64_t ldc;
  Epilogue epilogue;

  const WorkTile* tiles;  // the plan, see plan/plan.h
  int32_t tiles_count;
  uint32_t*
      tiles_taken;  // (1): the product's own counter, see collective/tile_queue.hpp; null: as many workers as tiles
  const int32_t* entry_k;
  const int32_t* entry_block;
  const int64_t* slot_row;
  int32_t slots;
  int32_t workers;  // CTAs, or clusters of `cluster` or `panels` CTAs; at most tiles_count, or where CTAs share the
                    // rows of a tile (row_mma), one for each of their slices
  int32_t late_workers;  // of these, the last ones, which have no tile of their own: see collective/tile_queue.hpp
  int32_t cluster;       // CTAs that share each tile along K; above 1, there are no more tiles than workers
  int32_t panels;        // CTAs of a cluster that compute neighbouring columns of each tile; above 1, cluster is 1
  bool values_static;    // no kernel that may still run when this one begins writes values
  bool batch_invariant;  // the order of sums must not depend on n
  bool padded_b;         // rows of B begin at multiples of 16 bytes, and may be read up to the next multiple
  PartSums parts;
  const RowChunks* rows_in_chunks;  // in host memory: of a plan with chunks (cuda/chunk_args.h), else null

  void* workspace;  // KernelOps::workspace_bytes, aligned to 256 bytes; null for 0 bytes
  bool uneven;      // some row groups are far longer than the mean, so their tiles come first in all panels
  // Of an operand that does not lie as most kernels read it: only for those with KernelOps::any_major.
  bool a_m_major, b_k_major, c_m_major;

  unsigned long long* recomputed;  // counts the slabs that were computed again, see nan_sums.cuh

  cudaStream_t stream;

  // A's values as KernelOps::lay_out wrote them, which are only read; null: the product lays them out in its workspace.
  void* laid_out;
};

struct KernelOps {
  // Raises the limit of shared memory. Called for each plan, before its first launch on a device.
  cudaError_t (*prepare)();
  cudaError_t (*launch)(const LaunchArgs&);
  int ctas_per_sm;       // CTAs of the persistent grid on each SM
  bool tensor_cores;     // sums by tensor cores, see unit_roundoff
  bool tma_b;            // B needs a 16-byte aligned address and pitch
  bool any_rows;         // a row group may hold any block rows
  int align_values;      // bytes to which A's values must be aligned
  bool any_epilogue;     // false: C must be of A's type and its own c_in, without bias, activation and device factors
  int most_cluster = 1;  // the most CTAs that can share a tile
  // Accepts parts of tiles: writes their sums to LaunchArgs::parts, and calls allow_dependent_launch if there are any.
  bool may_split = false;
  bool takes_tiles = false;  // its CTAs take tiles by LaunchArgs::tiles_taken
  // Where there are at most so many times as many tiles as CTAs that run at once, each CTA has one tile, and begins
  // when another has ended: see cuda/worker_count.h.
  int most_rounds = 1;
  int64_t least_elements = 0;  // of A in a tile on average, for more than one round
  int most_panels = 1;         // the most CTAs of a cluster that compute neighbouring columns of a tile
  // Device memory that a product works in, beside parts, by its sizes and whether A is laid out; null: none.
  size_t (*workspace_bytes)(const LaunchArgs&) = nullptr;
  bool takes_chunks = false;       // its plans have chunks instead of tiles: LaunchArgs::rows_in_chunks
  int32_t most_block = INT32_MAX;  // rows and columns of a block, at most
  // Reads A's blocks and B, and writes C, in either order: LaunchArgs::a_m_major, b_k_major and c_m_major. Of a B with
  // K contiguous the address and the pitch must be multiples of 16 bytes.
  bool any_major = false;
  // Of kernels that read A's values in a layout of their own, which a plan may keep while the values stay the same: its
  // bytes, by a product's sizes, and what writes it to `to`, aligned to 256 bytes, in args.stream. Null: none.
  size_t (*layout_bytes)(const LaunchArgs&) = nullptr;
  cudaError_t (*lay_out)(const LaunchArgs&, void* to) = nullptr;
};

}  // namespace sparsek::cuda
