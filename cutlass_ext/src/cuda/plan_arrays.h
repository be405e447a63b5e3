// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/plan_memory.h"
#include "plan/digest.h"
#include "plan/plan.h"

namespace sparsek::cuda {

struct PlanSizes {
  int64_t tiles = 0, entries = 0, groups = 0;
  int32_t slots = 1;
  int32_t split_tiles = 0, parts = 0;
};

// What kernels read of a plan, and a counter that they write, in device memory: one block of it, filled by one copy.
class PlanArrays {
 public:
  PlanArrays() = default;
  // Complete when the constructor returns. uses: of the products, as in PlanMemory::allocate.
  PlanArrays(PlanMemory& memory, const Plan& plan, const StreamUses& uses);
  // To be filled in, in the stream of `memory`.
  PlanArrays(PlanMemory& memory, const PlanSizes& sizes, const StreamUses& uses);

  const PlanSizes& sizes() const { return sizes_; }
  WorkTile* tiles() const { return at<WorkTile>(kTiles); }               // (tiles)
  int32_t* entry_k() const { return at<int32_t>(kEntryK); }              // (entries)
  int32_t* entry_block() const { return at<int32_t>(kEntryBlock); }      // (entries, slots)
  int64_t* slot_row() const { return at<int64_t>(kSlotRow); }            // (groups, slots): first row of C
  SplitTile* split_tiles() const { return at<SplitTile>(kSplitTiles); }  // (split_tiles)
  unsigned long long* recomputed() const { return at<unsigned long long>(kRecomputed); }  // (1): see exact_rows.cuh
  size_t bytes() const { return block_.bytes(); }

  // All but the counter, copied to the host.
  void add_to(Digest& digest) const;

 private:
  enum Part { kTiles, kEntryK, kEntryBlock, kSlotRow, kSplitTiles, kRecomputed, kParts };

  template <class T>
  T* at(Part part) const {
    return reinterpret_cast<T*>(block_.data() + begin_[part]);
  }

  PlanSizes sizes_;
  PlanMemory::Block block_;
  size_t begin_[kParts] = {};
};

}  // namespace sparsek::cuda
