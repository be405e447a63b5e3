// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"
#include "cuda/vendor/library_handles.h"
#include "cuda/vendor/library_kernels.h"

namespace sparsek::cuda {

// Why a kernel does not serve a matrix here; empty where it does. It opens the library where nothing else is in the
// way.
std::string obstacle(const LibraryKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options);

// A plan of a library's kernel. The current device must be the matrix's; matrix and handles must outlive the plan.
// Throws SPARSEK_NO_SUCH_KERNEL where the kernel does not serve the case, SPARSEK_NO_LIBRARY where its library is not
// there and SPARSEK_OUT_OF_MEMORY where A does not fit in the library's layout.
std::unique_ptr<PlanState> make_library_plan(const LibraryKernel& kernel, CudaMatrix& matrix,
                                             const PlanOptions& options, LibraryHandles& handles);

// What plans of libraries have in common.
class LibraryPlan : public PlanState {
 public:
  // Waits for nothing, unless a product was captured into a graph: then for the device.
  ~LibraryPlan() override;
  void info(sparsek_plan_info& out) const final;
  void multiply(const MultiplyArgs& args) final;
  void multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) final;
  double setup_time() final;

 protected:
  // expanded: null where the library reads the values as they are.
  LibraryPlan(const LibraryKernel& kernel, CudaMatrix& matrix, const PlanOptions& options,
              std::shared_ptr<const ExpandedValues> expanded);

  const CudaMatrix& matrix() const { return matrix_; }
  const PlanOptions& options() const { return options_; }
  const ExpandedValues& expanded() const { return *expanded_; }
  bool has_expanded() const { return expanded_ != nullptr; }
  const StreamUses& uses() const { return uses_; }  // of what a plan has in device memory

 private:
  // Throws what the library, or the plan, cannot do with these arguments.
  void require_served(const MultiplyArgs& args) const;
  // The product of A, its values in device memory, expanded where they have to be; c_in is c.
  virtual void run(const MultiplyArgs& args, const void* values) = 0;
  // Of device memory, beside the expanded values.
  virtual size_t bytes() const = 0;

  const LibraryKernel& kernel_;
  CudaMatrix& matrix_;
  const PlanOptions options_;
  const std::shared_ptr<const ExpandedValues> expanded_;
  StreamUses uses_;
};

}  // namespace sparsek::cuda
