// SPDX-License-Identifier: Apache-2.0
// The lists of attention's kernels, made in device memory of a layout that lies there: with the steps and the order of
// plan/attention_steps.h and plan/attention_gradient_steps.h, but for gaps between the steps of tiles.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/index_verdict.h"
#include "cuda/layout.h"
#include "plan/attention.h"
#include "plan/attention_places.h"
#include "plan/work_tile.h"

namespace sparsek::cuda {

// A layout as kernels read it. Of a faulty index no tile has steps.
struct LayoutView {
  CheckedIndex index;
  int32_t query_blocks;  // of a layout head
  int32_t per_q, per_k;  // units of 64 queries and 64 keys of a block
  UnitRules rules;
};

// Where the steps of a tile of one layout head lie.
struct StepRange {
  int32_t begin, count;
};

// How heads and their tiles follow each other (append_tiles of plan/attention_units.h), and which list a head has.
struct HeadOrder {
  int32_t heads, tiles_of_head, at_once;
  int32_t heads_of_batch, lists_of_batch, sharing;  // `sharing` consecutive heads have one list
  bool per_batch;                                   // whether batches have lists of their own

  SPARSEK_ANYWHERE constexpr int32_t list_of(int32_t head) const {
    return (per_batch ? head / heads_of_batch * lists_of_batch : 0) + head % heads_of_batch / sharing;
  }
};

// One list, as it is made and as a kernel of attention reads it.
struct ListArrays {
  AttentionStep* steps;
  StepRange* ranges;  // (lists, tiles_of_head)
  WorkTile* tiles;
  int32_t* taken;  // (1): of keys, how many steps tiles have taken
};

class ListLayout {
 public:
  ListLayout(int64_t steps, int64_t ranges, int64_t tiles, Layout& layout);
  ListArrays within(std::byte* memory) const;

 private:
  size_t steps_, ranges_, tiles_, taken_;
};

// Makes the lists of one attention: enqueues kernels, waits for nothing and allocates nothing.
class DeviceLists {
 public:
  // nnzb: the most blocks that the layout has. Throws SPARSEK_BAD_SIZE where a list would be beyond int32, and loads
  // the kernels, which a capture does not allow. l2_bytes: as in make_attention_steps.
  DeviceLists(const AttentionShape& shape, int64_t nnzb, int64_t l2_bytes);

  ListLayout forward_layout(Layout& layout) const;
  ListLayout queries_layout(Layout& layout) const;
  ListLayout keys_layout(Layout& layout) const;

  void make_forward(const CheckedIndex& index, const ListArrays& to, cudaStream_t stream) const;
  void make_queries(const CheckedIndex& index, const ListArrays& to, cudaStream_t stream) const;
  void make_keys(const CheckedIndex& index, const ListArrays& to, cudaStream_t stream) const;

  int32_t query_tiles() const { return queries_.heads * queries_.tiles_of_head; }
  int32_t key_tiles() const { return keys_.heads * keys_.tiles_of_head; }

 private:
  LayoutView view_;  // without the index
  HeadOrder queries_, keys_;
  int32_t query_lists_, key_lists_;  // of all batches
  int32_t group_;                    // query heads of a key head
  int32_t layout_heads_, layout_sharing_;
  int64_t query_words_, key_words_;  // the most that there are
};

}  // namespace sparsek::cuda
