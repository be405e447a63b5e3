// SPDX-License-Identifier: Apache-2.0
#include "cuda/list_candidates.h"

#include <cstring>

#include "abi/dtype.h"
#include "abi/product_form.h"
#include "cuda/cost_model.h"
#include "cuda/find_kernel.h"
#include "cuda/form_copies.h"
#include "cuda/vendor/library_plan.h"

namespace sparsek::cuda {
namespace {

// NaN and Inf in B cost wgmma_packed up to 12 times the time, wgmma_scatter 20 times, and wgmma_gather at most twice
// (docs/notes/packed-kernel.md, docs/notes/scatter-kernel.md).
bool is_left_to_gather(const KernelDesc& kernel, const BsrShape& matrix) {
  return (std::strcmp(kernel.family, "wgmma_packed") == 0 || scatters(kernel)) && matrix.block_m % 8 == 0 &&
         matrix.block_k % 8 == 0;
}

// Of wide tiles, by many columns.
bool is_left_to_packed(const KernelDesc& kernel, const BsrShape& matrix, int64_t n) {
  return scatters(kernel) && kernel.tile_n > 64 && matrix.block_m % 4 == 0 && n > 1024;
}

// Without zeros where blocks are none.
bool is_left_to_dmma(const KernelDesc& kernel, const BsrShape& matrix) {
  return packs_fp64(kernel) && matrix.block_m % 8 == 0 && matrix.block_k % 8 == 0;
}

// Which multiplies no zeros where entries of a row group have no blocks, and takes less for NaN.
bool is_left_to_planes(const KernelDesc& kernel, const BsrShape& matrix) {
  return packs_planes(kernel) && matrix.block_m % 8 == 0 && matrix.block_k % 16 == 0;
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
               false};
  std::vector<tune::Candidate> list;
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelDesc& kernel = kKernels[i];
    if (kernel.baseline || kernel.dtype != matrix.dtype || kernel.dtype_b != options.dtype_b) continue;
    tune::Candidate candidate;
    candidate.kernel = kernel.name;
    const FormCopies copies = copies_for(&kernel, options);
    const PlanOptions between = between_copies(copies, options, inner_extent(options.op, matrix.shape()));
    candidate.obstacle = obstacle(kernel, matrix.shape(), matrix.dtype, between);
    if (candidate.obstacle.empty() && is_left_to_gather(kernel, matrix.shape())) {
      candidate.obstacle = "wgmma_gather serves these blocks, and is faster where B has NaN or Inf";
    }
    if (candidate.obstacle.empty() && is_left_to_packed(kernel, matrix.shape(), options.n)) {
      candidate.obstacle = "wgmma_packed serves these blocks, and is faster";
    }
    if (candidate.obstacle.empty() && is_left_to_dmma(kernel, matrix.shape())) {
      candidate.obstacle = "dmma serves these blocks, and is faster";
    }
    if (candidate.obstacle.empty() && is_left_to_planes(kernel, matrix.shape())) {
      candidate.obstacle = "wgmma_planes serves these blocks, and is faster";
    }
    work.packs_b = packs_b(kernel, between);
    if (candidate.obstacle.empty()) {
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
