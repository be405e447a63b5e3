// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "abi/backend.h"
#include "cuda/event.h"
#include "cuda/kept_layout.h"
#include "cuda/made_mark.h"
#include "cuda/plan_memory.h"
#include "cuda/stream_uses.h"
#include "cuda/vendor/expanded_values.h"
#include "cuda/vendor/index_arrays.h"
#include "plan/row_order.h"

namespace sparsek::cuda {

class CudaMatrix final : public MatrixState {
 public:
  // The current device must be `device`. memory must outlive the matrix.
  CudaMatrix(const sparsek_bsr& a, int device, PlanMemory& memory);
  // A pattern whose index nobody has yet: only its sizes are known.
  CudaMatrix(const BsrShape& shape, sparsek_dtype type, int device, PlanMemory& memory);

  const BsrShape& shape() const override;
  const PatternStats& stats() const override;
  void set_values(const void* values, sparsek_memory memory, sparsek_stream stream) override;
  bool is_async() const override { return is_async_; }
  bool check_index(bool wait) override;
  void end_in(sparsek_stream stream) override;
  // A new index, of an asynchronous matrix, for PlanState::update: enqueued in a.stream. Returns whether that is being
  // captured.
  bool update(const sparsek_bsr& a);

  // The transpose of a matrix whose index is on the host, made when it is first asked for, without values; else null.
  std::shared_ptr<CudaMatrix> transposed() const;

  // Where the caller's was, there it stays.
  const AnyIndex& index() const { return index_; }
  // Until the last settled values are there: copied from the host, or written before they were set.
  void wait_for_copy();
  bool is_bounded() const { return is_bounded_; }
  // Of the caller: where plans of an asynchronous matrix are made.
  cudaStream_t stream() const { return stream_; }
  RowOrders* orders() const { return orders_.get(); }  // of an index on the host, else null
  int device() const { return device_; }
  PlanMemory& memory() const { return memory_; }
  // Those of a plan, which is no more: its products read the values and, some, the index.
  void add_uses(const StreamUses& uses) noexcept { uses_.add_all(uses); }
  const StreamUses& uses() const { return uses_; }
  const MadeMark& made() const { return made_; }  // the index
  const void* values() const { return values_; }  // in device memory; null until they are set
  size_t value_bytes() const;

  // Whether the values are this matrix's, and change by set_values alone: its own copy of host values, or the frozen
  // ones. Others are the caller's, who may write to them at any time, and tells nobody. So are frozen ones once a graph
  // sets values: a replay changes what plans keep, and not which values the matrix has.
  bool is_settled(const void* values) const {
    return values == owned_ || (is_frozen_ && !is_set_by_graph_ && values == values_);
  }

  // Whether a plan may keep a layout of the values. Not where a graph sets them, which would not know of that layout.
  bool lets_plans_keep_values() const {
    return !is_async_ && !is_set_by_graph_ && values_ != nullptr && is_settled(values_);
  }
  // A layout of these bytes, which the plan has until it leaves it: that of other plans, where they have such a one. It
  // is full when this returns, and filled again with all values that are set later. Null where the plan must keep none,
  // where the matrix's layouts would take too much memory, or where there is no memory. Waits. The current device must
  // be the matrix's.
  KeptLayout* join_layout(LayoutKind kind, size_t bytes, LayoutWriter& plan);
  // uses: of the plan's products. Waits as Releases::release does, where the layout has no other plan.
  void leave_layout(KeptLayout& layout, const LayoutWriter& plan, const StreamUses& uses) noexcept;

  // The values laid out in that way, one for all who have it. Of settled values it holds the latest; others it holds
  // once it was filled with them. The current device must be the matrix's.
  std::shared_ptr<const ExpandedValues> expanded(Expansion expansion);
  // Seconds that filling it takes; measured, so it waits. Throws SPARSEK_NULL_POINTER where no values are set. Those in
  // device memory must stay unchanged meanwhile.
  double fill_time(const ExpandedValues& expanded);

 private:
  // With owning_ held.
  void copy_values(const void* host, cudaStream_t stream);
  void wait_for_copied() const;

  AnyIndex make_index(const sparsek_bsr& a);

  int device_;
  PlanMemory& memory_;
  const bool is_async_;
  const bool is_bounded_;      // there may be fewer blocks than nnzb
  const bool is_frozen_;       // values in device memory change by set_values alone
  const cudaStream_t stream_;  // of the caller, or null
  StreamUses uses_;            // of what this has in device memory, but for those of plans that exist
  AnyIndex index_;
  MadeMark made_;                         // behind the check of the index, where that was not waited for
  std::atomic<bool> is_good_{false};      // what it found
  std::atomic<bool> is_replayed_{false};  // a graph may change that
  std::atomic<const void*> values_ = nullptr;
  std::unique_ptr<RowOrders> orders_;
  mutable LazyStats stats_;
  mutable std::mutex transposing_;  // held while the next is made
  mutable std::shared_ptr<CudaMatrix> transposed_;
  std::mutex owning_;                         // held while one of those below changes or is filled
  PoolArray<char> owned_values_;              // where the values came from the host
  std::atomic<const void*> owned_ = nullptr;  // its address
  std::unique_ptr<Event> copied_;             // behind the last settled values, and what was filled with these
  std::weak_ptr<const ExpandedValues> expanded_[kExpansions];
  std::atomic<bool> is_set_by_graph_{false};  // a graph may set values that are settled
  std::mutex listing_;                        // held, behind owning_, while these change
  std::vector<std::unique_ptr<KeptLayout>> layouts_;
};

// Throws SPARSEK_WRONG_MEMORY where a pointer is not of the memory it is said to be of, or of another device whose
// memory `device`, the current one, may not use.
void check_memory(const void* pointer, sparsek_memory memory, int device, const char* name);

}  // namespace sparsek::cuda
