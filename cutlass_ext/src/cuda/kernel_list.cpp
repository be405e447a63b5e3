// SPDX-License-Identifier: Apache-2.0
// The kernels of the CUDA back-end as callers see them: those of the list, then those of NVIDIA's libraries.
#include "abi/backend.h"
#include "cuda/kernel.h"
#include "cuda/vendor/library_kernels.h"

namespace sparsek {
namespace {

void describe(const cuda::KernelDesc& kernel, sparsek_kernel_info& out) {
  out.name = kernel.name;
  out.why = kernel.why;
  out.dtype = kernel.dtype;
  if (kernel.dtype_b != kernel.dtype) out.dtype_b = kernel.dtype_b;
  out.tile_m = kernel.tile_m;
  out.tile_n = kernel.tile_n;
  out.tile_k = kernel.tile_k;
  out.stages = kernel.stages;
  out.block_m = kernel.block_m;
  out.block_m_multiple = kernel.block_m_multiple;
  out.block_k_multiple = kernel.block_k_multiple;
  out.baseline = kernel.baseline;
}

void describe(const cuda::LibraryKernel& kernel, sparsek_kernel_info& out) {
  out.name = kernel.name;
  out.why = kernel.why;
  out.block_k_multiple = 1;
  out.baseline = 1;
  out.library = kernel.library;
  out.reads_absent = kernel.reads_absent;
}

}  // namespace

int cuda_kernel_count() { return cuda::kKernelCount + static_cast<int>(cuda::library_kernels().size()); }

void cuda_kernel_info(int index, sparsek_kernel_info& out) {
  out.backend = SPARSEK_CUDA;
  if (index < cuda::kKernelCount) {
    describe(cuda::kKernels[index], out);
  } else {
    describe(cuda::library_kernels()[static_cast<size_t>(index - cuda::kKernelCount)], out);
  }
}

}  // namespace sparsek
