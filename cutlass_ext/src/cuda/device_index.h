// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/index_verdict.h"
#include "cuda/layout.h"
#include "cuda/plan_memory.h"
#include "plan/bsr_index.h"

namespace sparsek::cuda {

// Where the copy of an index lies within a block of memory.
class IndexLayout {
 public:
  IndexLayout(const BsrShape& shape, Layout& layout);
  CheckedIndex within(std::byte* memory) const;

 private:
  size_t row_ptr_, col_idx_, block_idx_, verdicts_, arrived_;
  int32_t verdict_count_;
};

// Copies an index out of device arrays and checks it in the same pass: one kernel in the stream, and a second one where
// rows are to be sorted. What was checked is what was copied, whatever becomes of the arrays. `to` has room for a.nnzb
// blocks; returns it, without block_idx where each block of values is that of its place. Pointers are assumed to be
// pointers to memory of the current device.
CheckedIndex enqueue_index(const sparsek_bsr& a, const CheckedIndex& to, cudaStream_t stream);

// Behind that: *fault, in device memory, becomes 0, or the first fault's status, with its place in the bits above the
// lowest 8. One kernel, after which no kernel that begins early can miss what was written before.
void enqueue_fault(const CheckedIndex& index, int64_t* fault, cudaStream_t stream);

// The index of a BSR matrix in device memory. The host never sees it.
class DeviceIndex : public BsrShape {
 public:
  // A pattern without an index.
  explicit DeviceIndex(const BsrShape& shape);
  // As enqueue_index; the memory is allocated in the order of the stream too. uses: as in PlanMemory::allocate.
  DeviceIndex(const sparsek_bsr& a, PlanMemory& memory, const StreamUses& uses, cudaStream_t stream);

  const CheckedIndex& arrays() const { return arrays_; }
  // Another index of that shape, in the same memory.
  void copy(const sparsek_bsr& a, cudaStream_t stream) { arrays_ = enqueue_index(a, room_, stream); }
  // When the copy is complete: throws the same faults as make_bsr_index, or returns the blocks of the longest block
  // row. Waits for a copy to the host.
  int32_t require_good(PlanMemory& memory) const;
  // Where it is complete from now on: the memory is given back in the order of another stream.
  void give_back_in(cudaStream_t stream) { block_.give_back_in(stream); }

  // Blocks of the block row that has most. What it is where all have as many, until somebody knows better.
  int32_t longest_row = 0;

 private:
  PlanMemory::Block block_;
  CheckedIndex room_ = {}, arrays_ = {};  // arrays_: without what is not used
};

}  // namespace sparsek::cuda
