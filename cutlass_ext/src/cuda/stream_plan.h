// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/index_verdict.h"
#include "cuda/plan_arrays.h"
#include "plan/entry_places.h"
#include "plan/plan.h"

namespace sparsek::cuda {

// Makes plans of an index in device memory: by kernels, in a stream, without a number that comes back to the host. The
// plan is that of make_plan, except that shape.any_rows and the splitting of tiles are ignored, and that there are gaps
// between the entries of row groups (plan/entry_places.h). That of an index with a fault has no entries.
class StreamPlanner {
 public:
  // nnzb of the pattern: an upper bound. Throws as make_plan does.
  StreamPlanner(const BsrShape& pattern, const PlanShape& shape);

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
};

}  // namespace sparsek::cuda
