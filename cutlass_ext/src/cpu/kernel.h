// SPDX-License-Identifier: Apache-2.0
// The interface of a CPU kernel. Plain data without inline functions: the files that implement it are compiled
// for different instruction sets, and the linker keeps only one copy of an inline function, from any of them.
#pragma once

#include <cstdint>

#include "sparsek.h"

namespace sparsek::cpu {

// Extents of one worker's scratch memory; see Scratch.
constexpr int kDepth = 256;      // products summed between two updates of the accumulators: rows of B packed at once
constexpr int kPieceRows = 128;  // rows of C accumulated at once
constexpr int kRowsAtOnce = 64;  // the same of Rows, whose sums may be fp64
constexpr int kTileCols = 288;   // columns of C accumulated at once; a multiple of each kernel's strips
constexpr int kADepth = kDepth + 16;  // pitch of the copy of A: rows fall into different sets of a cache

// fp32, 64-byte aligned.
struct Scratch {
  float* a;            // (kPieceRows, kDepth):(kADepth, 1)
  float* b;            // strips of kDepth x width floats one after the other, kTileCols columns in all
  float* c;            // (kPieceRows, kTileCols):(kTileCols, 1)
  const void** b_row;  // (kDepth): where the tile's part of each row of B starts
};

// One multiply.
struct Product {
  int32_t block_m, block_k;
  int32_t slots;               // as in the plan
  const int32_t* entry_k;      // as in the plan, (entries)
  const int32_t* entry_block;  // as in the plan: for tiles (entries, slots), for chunks null or (entries)
  const int32_t* row_ptr;      // as in the plan, for chunks
  int64_t rows, depth, cols;   // M, K, N
  const void* values;          // (nnzb, bm, bk)
  const void* b;               // (K, N):(ldb, 1)
  int64_t ldb;
  void* c;  // (M, N):(ldc, 1)
  int64_t ldc;
  const void* c_in;  // of C's type: (M, N):(ldc_in, 1), what beta is multiplied with; may be C
  int64_t ldc_in;    // 0: one row for all
  float alpha, beta;
  sparsek_dtype dtype_c;
  const void* bias;  // of C's type: (M) or (N)
  sparsek_bias bias_kind;
  sparsek_activation activation;
  bool any_order;  // the sums of one column may have another order than those of more
  // The product is of the transpose of the matrix that values are of: a block of theirs is (bk, bm), and block_m, rows,
  // depth and the plan are the transpose's.
  bool transposed;
};

// One tile of C: rows [row, row_end), columns [col, col_end), at most kTileCols, both inside C. Its entries are
// [entry_begin, entry_begin + entry_count).
struct Tile {
  int64_t row, row_end;
  int64_t col, col_end;
  int32_t entry_begin, entry_count;
};

// Each element is summed in the order of increasing k, whatever the tile, so that a result depends neither on the tiles
// nor on the threads; one column in any_order, which does not depend on them either.
using TileFunction = void (*)(const Product& product, const Tile& tile, const Scratch& scratch);

// A part of C: block rows [begin, end), of each block rows [in_block, in_block_end), at most kRowsAtOnce, and columns
// [col, col_end) of C, at most kTileCols.
struct Rows {
  int32_t begin, end;
  int32_t in_block, in_block_end;
  int64_t col, col_end;
};

using RowFunction = void (*)(const Product& product, const Rows& rows, const Scratch& scratch);

// Blocks of a product of two dense matrices: those that stand at `entries` of the plan, block rows [begin, end), of
// each block rows [in_block, in_block_end), at most kRowsAtOnce.
struct Blocks {
  int32_t begin, end;
  int32_t entry_begin, entry_end;
  int32_t in_block, in_block_end;
};

// One multiply that gives blocks: blocks = act(alpha X B + beta blocks_in), where the plan has entries.
struct SampledProduct {
  Product product;  // depth is that of X and B; C and C's input are the blocks, as `values` of other products
  int64_t cols;     // of the matrix
  const void* x;    // (M, depth):(x_row, x_step)
  int64_t x_row, x_step;
};

using BlockFunction = void (*)(const SampledProduct& product, const Blocks& blocks, const Scratch& scratch);

struct AttentionKernel;  // cpu/attention_kernel.h

struct Kernel {
  const char* name;  // "cpu_avx512"
  const char* isa;   // "avx512"
  const char* why;
  TileFunction tile_bf16, tile_fp16, tile_fp32;
  RowFunction rows_bf16, rows_fp16, rows_fp32, rows_fp64;
  BlockFunction blocks_bf16, blocks_fp16, blocks_fp32, blocks_fp64;
  // A narrower than B: its type, then B's.
  RowFunction rows_bf16_fp32, rows_fp16_fp32, rows_bf16_fp64, rows_fp16_fp64, rows_fp32_fp64;
  const AttentionKernel* attention;
};

extern const Kernel kAvx512Kernel;
extern const Kernel kAvx2Kernel;
extern const Kernel kGenericKernel;

}  // namespace sparsek::cpu
