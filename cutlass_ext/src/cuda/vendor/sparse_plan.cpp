// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/sparse_plan.h"

#include "abi/error.h"

namespace sparsek::cuda {

namespace {

// A as cuSPARSE reads it; null where that is as it is.
std::shared_ptr<const ExpandedValues> expanded_for(LibraryFormat format, CudaMatrix& matrix) {
  const BsrShape& a = matrix.shape();
  if (format == LibraryFormat::kBlockedEll) return matrix.expanded(Expansion::kPacked);
  if (is_csr(format) && (a.block_m > 1 || a.block_k > 1)) return matrix.expanded(Expansion::kRows);
  return nullptr;
}

}  // namespace

SparsePlan::SparsePlan(const LibraryKernel& kernel, CudaMatrix& matrix, const PlanOptions& options, Cusparse& cusparse)
    : LibraryPlan(kernel, matrix, options, expanded_for(kernel.format, matrix)), cusparse_(cusparse), product_() {
  const BsrShape& a = matrix.shape();
  product_.format = kernel.format;
  product_.m = a.rows;
  product_.n = options.n;
  product_.k = a.cols;
  product_.block = is_csr(kernel.format) ? 1 : a.block_m;
  product_.dtype = matrix.dtype;
  product_.dtype_c = options.dtype_c;
  product_.ldb = options.ldb;
  product_.ldc = options.ldc;
  if (is_csr(kernel.format) && has_expanded()) {
    csr_.emplace(matrix.index(), matrix.memory(), uses());
    product_.blocks = a.nnzb * a.block_m * a.block_k;
    product_.row_ptr = csr_->row_ptr();
    product_.col_idx = csr_->col_idx();
  } else if (kernel.format != LibraryFormat::kBlockedEll) {
    arrays_.emplace(matrix.index(), matrix.memory(), uses());
    product_.blocks = a.nnzb;
    product_.row_ptr = arrays_->row_ptr();
    product_.col_idx = arrays_->col_idx();
  } else {
    product_.blocks = longest_row(matrix.index());
    ell_columns_ = blocked_ell_columns(matrix.index(), product_.blocks, matrix.memory(), uses());
    product_.col_idx = ell_columns_.data();
  }

  // Descriptors need addresses even where nothing is read through them.
  SparseProduct sample = product_;
  void* const unread = const_cast<int32_t*>(product_.col_idx);
  sample.values = sample.b = sample.c = unread;
  sample.alpha = 1;
  workspace_bytes_ = cusparse_.workspace_bytes(sample);
}

void SparsePlan::run(const MultiplyArgs& args, const void* values) {
  if (reinterpret_cast<uintptr_t>(values) % kSparseAlignment != 0) {
    fail(SPARSEK_MISALIGNED, "values = %p is not aligned to %d bytes, as cuSPARSE is given operands", values,
         kSparseAlignment);
  }
  SparseProduct now = product_;
  now.values = values;
  now.alpha = args.alpha;
  now.beta = args.beta;
  now.b = args.b;
  now.c = args.c;
  size_t workspace_bytes = workspace_bytes_;
  if (args.n != product_.n || args.ldb != product_.ldb || args.ldc != product_.ldc) {
    now.n = args.n;
    now.ldb = args.ldb;
    now.ldc = args.ldc;
    workspace_bytes = cusparse_.workspace_bytes(now);
  }
  cusparse_.multiply(now, workspace_bytes, static_cast<cudaStream_t>(args.stream));
}

size_t SparsePlan::bytes() const {
  return ell_columns_.bytes() + (arrays_ ? arrays_->bytes() : 0) + (csr_ ? csr_->bytes() : 0);
}

}  // namespace sparsek::cuda
