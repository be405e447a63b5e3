// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/index_verdict.h"
#include "cuda/plan_arrays.h"
#include "plan/entry_places.h"
#include "plan/plan.h"

namespace sparsek::cuda {

// Makes plans of an index in device memory: by kernels, in a stream, without a number that comes back to the host. The
// plan is that of make_plan, except that shape.most_parts is ignored, and shape.any_rows where there are too many block
// columns for may_match_rows (cuda/row_matching.h), and that there are gaps between the entries of row groups
// (plan/entry_places.h). That of an index with a fault has no entries.
class DevicePlanner {
 public:
  // nnzb of the pattern: an upper bound. lists: of a plan with chunks that has lists of stages. Throws as make_plan
  // does.
  DevicePlanner(const BsrShape& pattern, const PlanShape& shape, const ListSizes& lists);

  // What the plan takes, with the gaps, and what making it takes.
  const PlanSizes& sizes() const { return sizes_; }
  // Allocates nothing. `to` is of these sizes.
  void enqueue(const CheckedIndex& index, const PlanArrays::Views& to, cudaStream_t stream) const;

 private:
  BsrShape pattern_;
  PlanShape shape_;
  RowGrid grid_;
  EntryPlaces places_;
  PlanSizes sizes_;
  bool matches_;  // block rows that have many columns in common share row groups
  // Within the scratch memory: the order of the rows, the entries' places that are taken, what the kernels work on.
  size_t order_at_ = 0, taken_at_ = 0, work_at_ = 0;
};

// Makes the lists of a plan with chunks, whose other arrays are complete. bounds: ListSizes::bound_bytes().
void enqueue_lists(const BsrShape& pattern, const ListSizes& sizes, const PlanArrays::Views& to, void* bounds,
                   cudaStream_t stream);

// Whether a plan that is made without waiting matches rows: where a product is expected to take eight times as long as
// the matching, of which it saves 7 % or so. Then a plan that is used once loses little, and any other gains.
bool is_matching_worthwhile(const BsrShape& pattern, const PlanShape& shape);

}  // namespace sparsek::cuda
