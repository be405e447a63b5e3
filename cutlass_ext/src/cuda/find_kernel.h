// SPDX-License-Identifier: Apache-2.0
// Which of our CUDA kernels serve a product.
#pragma once

#include <string>

#include "abi/backend.h"
#include "cuda/kernel.h"

namespace sparsek::cuda {

// Why a kernel does not serve a product; empty where it does.
std::string obstacle(const KernelDesc& kernel, const BsrShape& matrix, sparsek_dtype dtype, const PlanOptions& options);

// Of a kernel that serves a product: which other one is chosen in its place, and why; empty where there is none.
std::string left_to_another(const KernelDesc& kernel, const BsrShape& matrix);

// Whether B has to be copied for a kernel that serves the product, since bulk copies need rows aligned to 16 bytes,
// or since of these many columns are read by fewer loads.
bool packs_b(const KernelDesc& kernel, const PlanOptions& options);

// Strides of a product that may differ from the planned ones, for which packs_b was asked. Throws
// SPARSEK_BAD_LEADING_DIMENSION where the kernel does not take them.
void require_strides(const KernelDesc& kernel, bool packs, int64_t ldb, int64_t ldc);

// That of the list with a name, or null.
const KernelDesc* find_kernel(const std::string& name);

// The kernel that options.kernel names. Throws SPARSEK_NO_SUCH_KERNEL where there is none or it does not serve.
const KernelDesc& kernel_named(const BsrShape& matrix, sparsek_dtype dtype, const PlanOptions& options);

}  // namespace sparsek::cuda
