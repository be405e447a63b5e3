// SPDX-License-Identifier: Apache-2.0
#include "cuda/list_candidates.h"

#include "abi/dtype.h"
#include "abi/product_form.h"
#include "cuda/cost_model.h"
#include "cuda/find_kernel.h"
#include "cuda/form_copies.h"
#include "cuda/value_layout.h"
#include "cuda/vendor/library_plan.h"
#include "plan/transpose_index.h"

namespace sparsek::cuda {

namespace {

bool keeps_layout(const KernelDesc& kernel, const CudaMatrix& matrix, const PlanOptions& options) {
  // A choice that must be the same for all plans of a matrix does not depend on what values it has by now.
  if (!matrix.lets_plans_keep_values() || options.batch_invariant) return false;
  return kept_bytes(kernel, sizes_of(matrix.shape(), options.n, options.workers, /*cluster=*/1)) > 0;
}

}  // namespace

std::vector<tune::Candidate> list_candidates(const CudaMatrix& matrix, const PlanOptions& options,
                                             const DeviceRates& device, bool libraries) {
  Work work = {matrix.shape(),
               matrix.stats(),
               options.n,
               dtype_bytes(matrix.dtype),
               dtype_bytes(options.dtype_b),
               dtype_bytes(options.dtype_c),
               device,
               /*packs_b=*/false,
               /*shares_tiles=*/!options.batch_invariant,
               options.workers,
               /*knows_rows=*/!matrix.is_async()};
  // The matrix is op(A), as that of CudaPlan.
  const BsrShape stored = transposes_a(options.op) ? transposed(matrix.shape()) : matrix.shape();
  std::vector<tune::Candidate> list;
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelDesc& kernel = kKernels[i];
    if (kernel.baseline || kernel.dtype != matrix.dtype || kernel.dtype_b != options.dtype_b) continue;
    tune::Candidate candidate;
    candidate.kernel = kernel.name;
    const FormCopies copies = copies_for(&kernel, options, stored);
    const PlanOptions between = between_copies(copies, options, inner_extent(options.op, stored));
    candidate.obstacle = obstacle(kernel, matrix.shape(), matrix.dtype, between);
    if (candidate.obstacle.empty()) candidate.obstacle = left_to_another(kernel, matrix.shape());
    work.packs_b = packs_b(kernel, between);
    if (candidate.obstacle.empty()) {
      candidate.keeps_values = work.is_laid_out = keeps_layout(kernel, matrix, options);
      candidate.predicted_seconds = predict(kernel, work) + predict_copies(copies, work);
    }
    list.push_back(std::move(candidate));
  }
  if (!libraries) return list;
  for (const LibraryKernel& kernel : library_kernels()) {
    tune::Candidate candidate;
    candidate.kernel = kernel.name;
    candidate.obstacle = obstacle(kernel, matrix, options);
    if (candidate.obstacle.empty()) candidate.predicted_seconds = predict(kernel.format, work);
    list.push_back(std::move(candidate));
  }
  return list;
}

}  // namespace sparsek::cuda
