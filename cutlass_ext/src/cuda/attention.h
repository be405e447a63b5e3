// SPDX-License-Identifier: Apache-2.0
// Kernels of attention's forward pass:
//
//   q, o   (batch, heads_q, seq_q, head_size):(strides, 1)
//   k, v   (batch, heads_k, seq_k, head_size):(strides, 1)
//   lse    (batch, heads_q, seq_q) or null
//
// Keys and values may lie in pages, see AttentionPages.
//
// A query sees the keys of the units that its tile's steps name for it, in partial ones those at which
// low <= key - query <= high. Where it sees none, o is 0 and lse is -inf.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/attention_step.h"
#include "plan/work_tile.h"
#include "sparsek.h"

namespace sparsek::cuda {

// Of a batch, a head and a row, in elements.
struct HeadStrides {
  int64_t batch, head, row;
};

// What steps of a kernel are: units, as they are in the list; what is left of these, with AttentionGeneralArgs; or of
// pieces. And what is left of either, with AttentionTerms, or with AttentionPages.
enum class StepKind { kPlain, kUnits, kPieces, kUnitTerms, kPieceTerms, kPagedUnits, kPagedPieces };
constexpr bool is_in_pieces(StepKind steps) {
  return steps == StepKind::kPieces || steps == StepKind::kPieceTerms || steps == StepKind::kPagedPieces;
}
constexpr bool has_terms(StepKind steps) { return steps == StepKind::kUnitTerms || steps == StepKind::kPieceTerms; }
constexpr bool has_pages(StepKind steps) { return steps == StepKind::kPagedUnits || steps == StepKind::kPagedPieces; }

// What scores have besides q k^T.
struct AttentionTerms {
  // Added to the scores, of fp32 where is_float, else of the operands' type, or null. Elements of blocks that are not
  // computed, or beyond lengths, are not read.
  const void* bias;
  int64_t stride_bias[4];  // of a batch, a query head, a query and a key, in elements
  bool is_float;
  // Kernels copy it by so many bytes, 16 or 4, of keys that follow each other in memory, aligned for it; or by those of
  // an element.
  uint8_t copy_bytes;
  // Bits of pairs that see each other, (mask_blocks, block_q, words), and their number for each block, (layout_batch,
  // layout_heads, query_blocks, key_blocks), or null. Blocks of other numbers have no bits.
  const uint32_t* mask;
  const int32_t* mask_index;
  int32_t mask_blocks, words;
  int32_t block_q, block_k, query_blocks, key_blocks;
  int32_t layout_batch, layout_heads;
  // Of the kernel of queries' gradients: (batch, heads_q, seq_q, seq_k), of which it writes what is not 0, or null.
  float* grad_bias;
};

// What only general kernels know.
struct AttentionGeneralArgs {
  const AttentionPieces* pieces;  // in place of steps, or null
  int32_t box;                    // see AttentionSteps
  // (batch), or null where all are seq_q and seq_k. What lies beyond is not read.
  const int32_t *lengths_q, *lengths_k;
  // Whether lengths move low and high, as rules do that align ends. Steps are then those without these rules.
  bool moves;
  float soft_cap;  // or 0
  // Of lists that are split (plan/attention_parts.h), (parts, batch, heads_q, seq_q, head_size): O of each part, in
  // place of o; lse is then (parts, batch, heads_q, seq_q). Else null.
  float* part_o;
  AttentionTerms terms;  // of kernels that have them
};

// Where keys and values lie in pages: k and v are (count, heads_k, rows, head_size):(strides, 1), and keys
// [i * rows, (i + 1) * rows) of a batch are those of page table[batch * stride + i]. Keys of a page that is none of
// these are hidden. general.box divides the rows.
struct AttentionPages {
  const int32_t* table;
  int64_t stride;
  int32_t rows, count;
};

// Of kernels of e4m3: what the elements of Q, K and V are multiplied by, for each batch and head, or null: 1.
struct AttentionScales {
  const float *q, *k, *v;
};

struct AttentionForwardArgs {
  const AttentionStep* steps;  // of plan/attention_steps.h
  const WorkTile* tiles;
  int32_t tile_count;
  uint32_t* tiles_taken;  // (1), see collective/tile_queue.hpp
  AttentionGeneralArgs general;
  int32_t batch, heads_q, heads_k, seq_q, seq_k, head_size;
  int32_t low, high;
  float scale;
  const void *q, *k, *v;
  void* o;
  HeadStrides stride_q, stride_k, stride_v, stride_o;
  float* lse;
  int32_t workers;  // CTAs
};

struct AttentionForwardOps {
  cudaError_t (*prepare)();  // loads the kernel; before the first launch on a device, since a capture does not allow it
  // pages, scales: of kernels that have them.
  cudaError_t (*launch)(const AttentionForwardArgs& args, const AttentionPages& pages, const AttentionScales& scales,
                        cudaStream_t stream);
};

// bf16 and fp16, by wgmma, for heads of at most so many columns, a multiple of 8. Addresses and strides are multiples
// of 16 bytes.
AttentionForwardOps attention_forward_64(sparsek_dtype dtype);
// alone: most steps are used by one warpgroup alone.
AttentionForwardOps attention_forward_96(sparsek_dtype dtype, bool alone);
AttentionForwardOps attention_forward_128(sparsek_dtype dtype, bool alone);
// The same with AttentionGeneralArgs, of lists in pieces or in units.
AttentionForwardOps attention_forward_general_64(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_general_96(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_general_128(sparsek_dtype dtype, bool pieces);
// Of lists in pieces, in steps of 64 keys.
AttentionForwardOps attention_forward_general_256(sparsek_dtype dtype);
// With AttentionTerms, too.
AttentionForwardOps attention_forward_terms_64(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_terms_96(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_terms_128(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_terms_256(sparsek_dtype dtype);
// General ones with AttentionPages, without AttentionTerms.
AttentionForwardOps attention_forward_paged_64(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_paged_96(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_paged_128(sparsek_dtype dtype, bool pieces);
AttentionForwardOps attention_forward_paged_256(sparsek_dtype dtype);
// e4m3, of lists in units, for heads of at most so many columns, a multiple of 16; o is of dtype_o, bf16 or fp16. Of
// AttentionGeneralArgs, general kernels have neither a soft cap nor terms, others none. v is what
// cuda/attention_transpose_values.h makes of it, and stride_v.row its keys.
AttentionForwardOps attention_forward_e4m3_64(sparsek_dtype dtype_o, bool general);
AttentionForwardOps attention_forward_e4m3_128(sparsek_dtype dtype_o, bool general);

}  // namespace sparsek::cuda
