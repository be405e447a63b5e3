// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vendor/library_plan.h"

namespace sparsek::cuda {

// A as a dense matrix, multiplied by cuBLAS.
class DensePlan final : public LibraryPlan {
 public:
  DensePlan(const LibraryKernel& kernel, CudaMatrix& matrix, const PlanOptions& options, Cublas& cublas)
      : LibraryPlan(kernel, matrix, options, matrix.expanded(Expansion::kDense)), cublas_(cublas) {}

 private:
  void run(const MultiplyArgs& args, const void* values) override {
    const BsrShape& a = matrix().shape();
    cublas_.multiply({a.rows, args.n, a.cols, matrix().dtype, options().dtype_c, args.alpha, args.beta, values, args.b,
                      args.c, expanded().pitch(), args.ldb, args.ldc},
                     static_cast<cudaStream_t>(args.stream));
  }
  size_t bytes() const override { return 0; }

  Cublas& cublas_;
};

}  // namespace sparsek::cuda
