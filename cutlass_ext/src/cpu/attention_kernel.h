// SPDX-License-Identifier: Apache-2.0
// The interface of a CPU kernel of attention. Plain data without inline functions, as kernel.h.
#pragma once

#include <cstdint>

namespace sparsek::cpu {

// A tile is some queries, or some keys, its lanes, that meet as many rows at once: keys, or queries.
constexpr int kAttentionLanes = 64;
constexpr int kAttentionRows = 64;

// Where rows lie in pages of a cache: row i is row i % rows of page table[i / rows]. Numbers of pages that are not in
// [0, count) have no rows.
struct HeadPages {
  const int32_t* table;  // null: rows do not lie in pages
  int64_t rows, count;
  int64_t stride;  // elements from one page to the next
};
// The rows of one head: row i, or of a page, is i * stride elements behind the first.
struct HeadRows {
  const void* data;
  int64_t stride;
  HeadPages pages;
};
struct HeadOutput {
  void* data;  // null: not wanted
  int64_t stride;
};

// What a head's scores have besides: element (i, j) of the bias, i * stride_q + j * stride_k behind the first, of the
// type of O or of fp32; and bits of its blocks' pairs, of block (i, j) those of number index[i * key_blocks + j].
struct PairTerms {
  const void* bias;  // null: none
  int64_t stride_q, stride_k;
  bool is_float;         // of fp32
  const uint32_t* mask;  // (mask_blocks, block_q, words), or null
  const int32_t* index;  // (query blocks, key blocks)
  int64_t mask_blocks, key_blocks, words;
};

struct AttentionTile {
  int64_t size, size_v;   // of heads
  double scale, scale_v;  // of scores, and of V
  double soft_cap;
  int64_t low, high;           // query i sees key j where low <= j - i <= high
  int64_t length_q, length_k;  // from here on nothing is read
  int64_t block_q, block_k;
  // Queries, or of keys_tile keys: [lane, lane_end) have results, at most kAttentionLanes, and [lane_end, pad_end) get
  // those of an empty row.
  int64_t lane, lane_end, pad_end;
  const int32_t* blocks;  // (block_count), ascending: blocks of keys, or queries, that the layout has for the tile
  int64_t block_count;
  HeadRows q, k, v, o, grad_o;
  HeadOutput out_o, grad_q, grad_k, grad_v;
  void* lse;    // (seq_q), of the type of the sums; written by forward_tile, where it is not null
  void* delta;  // (seq_q), of the same type: the sum of dO O of each query
  PairTerms terms;
  void* grad_bias;  // (seq_q, seq_k), of the same type; written by queries_tile, where it is not null
  int64_t seq_k;    // of a row of it
  void* mass;       // (key blocks), of the same type: mass_tile adds the tile's weights of each block
  // Of keys_tile, which adds up over the query heads of a group: whether this is the first and the last of them.
  bool first, last;
};

// scratch: attention_scratch elements of the type of the sums, aligned to 64 bytes. Sums have the order of the rows,
// whatever the tiles and threads.
using AttentionFunction = void (*)(const AttentionTile& tile, void* scratch);

struct AttentionFunctions {
  AttentionFunction forward;  // O and LSE of queries
  AttentionFunction mass;     // of queries, by their LSE
  AttentionFunction delta;    // of queries
  AttentionFunction queries;  // grad_q
  AttentionFunction keys;     // grad_k and grad_v
};

struct AttentionKernel {
  AttentionFunctions bf16, fp16, fp32, fp64;
  AttentionFunctions e4m3_to_bf16, e4m3_to_fp16;  // `forward` alone
};

extern const AttentionKernel kAvx512Attention;
extern const AttentionKernel kAvx2Attention;
extern const AttentionKernel kGenericAttention;

}  // namespace sparsek::cpu
