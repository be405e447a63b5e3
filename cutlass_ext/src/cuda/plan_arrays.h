// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/entry_range.h"
#include "cuda/layout.h"
#include "cuda/plan_memory.h"
#include "cuda/stage_lists.h"
#include "plan/digest.h"
#include "plan/plan.h"

namespace sparsek::cuda {

struct PlanSizes {
  int64_t tiles = 0, entries = 0, groups = 0;
  int32_t slots = 1;
  int32_t split_tiles = 0, parts = 0;
  // Of a plan with chunks, whose entries are the blocks; else 0.
  int32_t chunks = 0;
  int64_t block_rows = 0;
  ListSizes lists;  // of kernels that scatter
  // Of a plan that is made on the device, which has gaps between the entries of its row groups; else 0.
  int64_t ranges = 0;  // row groups
  size_t scratch = 0;  // bytes
};

// Where the arrays of a plan lie within a block of memory.
class PlanLayout {
 public:
  PlanLayout() = default;
  PlanLayout(const PlanSizes& sizes, Layout& layout);

 private:
  friend class PlanArrays;
  enum Part {
    kTiles,
    kEntryK,
    kEntryBlock,
    kSlotRow,
    kSplitTiles,
    kChunks,
    kRowPtr,
    kLists,
    kRecomputed,
    kEntries,
    kRanges,
    kScratch,
    kParts
  };
  size_t begin_[kParts] = {};
};

// What kernels read of a plan, and a counter that they write, in device memory: one block of it.
class PlanArrays {
 public:
  struct Views {
    WorkTile* tiles;                 // (tiles)
    int32_t* entry_k;                // (entries)
    int32_t* entry_block;            // (entries, slots)
    int64_t* slot_row;               // (groups, slots): first row of C
    SplitTile* split_tiles;          // (split_tiles)
    RowChunk* chunks;                // (chunks)
    int32_t* row_ptr;                // (block_rows + 1), where there are chunks
    std::byte* lists;                // StageLists, of sizes.lists
    unsigned long long* recomputed;  // (1): see nan_sums.cuh
    unsigned long long* entries;     // (1): those that there are, where a plan has gaps between them
    EntryRange* ranges;              // (ranges)
    std::byte* scratch;              // (scratch)
  };

  PlanArrays() = default;
  // Filled by one copy, but for the lists; complete when the constructor returns. uses: of the products, as in
  // PlanMemory::allocate.
  PlanArrays(PlanMemory& memory, const Plan& plan, const StreamUses& uses, const ListSizes& lists);
  // To be filled in, in the stream.
  PlanArrays(PlanMemory& memory, const PlanSizes& sizes, const StreamUses& uses, cudaStream_t stream);
  // Within memory that is not owned.
  PlanArrays(const PlanSizes& sizes, const PlanLayout& layout, std::byte* memory);

  const PlanSizes& sizes() const { return sizes_; }
  const Views& views() const { return views_; }
  WorkTile* tiles() const { return views_.tiles; }
  int32_t* entry_k() const { return views_.entry_k; }
  int32_t* entry_block() const { return views_.entry_block; }
  int64_t* slot_row() const { return views_.slot_row; }
  SplitTile* split_tiles() const { return views_.split_tiles; }
  unsigned long long* recomputed() const { return views_.recomputed; }
  const RowChunk* chunks() const { return views_.chunks; }
  const int32_t* row_ptr() const { return views_.row_ptr; }
  StageLists lists() const { return {sizes_.lists, views_.lists}; }
  size_t bytes() const { return block_.bytes(); }

  // All but the counter and the gaps, copied to the host.
  void add_to(Digest& digest) const;

 private:
  static Views views_of(const PlanLayout& layout, std::byte* memory);

  PlanSizes sizes_;
  PlanMemory::Block block_;
  Views views_ = {};
};

}  // namespace sparsek::cuda
