// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cuda/vendor/library_plan.h"

namespace sparsek::cuda {

// A in one of cuSPARSE's formats, multiplied by it: BSR and, of blocks of 1 x 1, CSR as they are; CSR of larger blocks,
// or Blocked-ELL.
class SparsePlan final : public LibraryPlan {
 public:
  SparsePlan(const LibraryKernel& kernel, CudaMatrix& matrix, const PlanOptions& options, Cusparse& cusparse);

 private:
  void run(const MultiplyArgs& args, const void* values) override;
  size_t bytes() const override;

  Cusparse& cusparse_;
  std::optional<IndexArrays> arrays_;  // of A as it is
  std::optional<CsrIndex> csr_;        // of its elements
  PoolArray<int32_t> ell_columns_;     // of Blocked-ELL
  SparseProduct product_;              // but for what each product brings
  size_t workspace_bytes_;
};

}  // namespace sparsek::cuda
