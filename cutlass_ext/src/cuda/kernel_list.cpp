// SPDX-License-Identifier: Apache-2.0
#include "cuda/choose_kernel.h"

#include "abi/dtype.h"
#include "abi/error.h"
#include "plan/row_order.h"

namespace sparsek::cuda {
namespace {

// Bulk tensor copies take pitches below 2^40 bytes.
constexpr int64_t kMaxTmaPitch = (int64_t{1} << 38) - 1;
constexpr int64_t kMaxTmaBlock = (int64_t{1} << 39) - 1, kMaxTmaExtent = (int64_t{1} << 30) - 1;

// Why a kernel does not serve a case; empty where it does.
std::string obstacle(const KernelDesc& kernel, const BsrShape& matrix, sparsek_dtype dtype,
                     const PlanOptions& options) {
  if (kernel.dtype != dtype) return "another type";
  const bool height_fits =
      kernel.block_m_multiple ? matrix.block_m % kernel.block_m == 0 : matrix.block_m == kernel.block_m;
  if (!height_fits) return "another block height";
  if (matrix.block_k % kernel.block_k_multiple != 0) return "another block width";
  const bool plain_epilogue =
      options.dtype_c == dtype && options.bias == SPARSEK_BIAS_NONE && options.activation == SPARSEK_ACTIVATION_NONE;
  if (!kernel.ops->any_epilogue && !plain_epilogue) {
    return "it writes C in the type of A, with neither a bias nor an activation";
  }
  const int64_t vector = 16 / dtype_bytes(dtype);
  const std::string multiple = "multiples of " + std::to_string(vector);
  if (kernel.ops->tma_b && (options.alignment % 16 != 0 || options.ldb % vector != 0)) {
    return "it needs B and C aligned to 16 bytes and ldb in " + multiple;
  }
  if (kernel.ops->tma_b && (options.ldb > kMaxTmaPitch || options.ldc > kMaxTmaPitch)) {
    return "its leading dimensions must be below 2^38";
  }
  if (kernel.ops->tma_b && (matrix.block_k > kMaxTmaBlock / matrix.block_m || matrix.block_k > kMaxTmaExtent)) {
    return "its blocks must be below 2^39 elements, and below 2^30 wide";
  }
  // N too: a bulk tensor store clips at 16 bytes, not at the element, and would write behind the rows of C.
  if (kernel.ops->tma_c && (options.n | options.ldc) % vector != 0) return "it needs N and ldc in " + multiple;
  return "";
}

// Whether a kernel that serves a case is one for it.
bool is_for(const KernelDesc& kernel, const BsrShape& matrix, const BsrIndex* index, const PlanOptions& options) {
  if (kernel.max_n > 0 && options.n > kernel.max_n) return false;
  // Where other block rows than neighbours have far more columns in common, a kernel that takes them together wins.
  constexpr double kWorthAnotherKernel = 0.85;
  const int32_t together = kernel.tile_m / matrix.block_m;
  const bool neighbours = !kernel.ops->any_rows && kernel.tile_m % matrix.block_m == 0 && together > 1;
  if (!neighbours || index == nullptr) return true;
  const RowOrder order = order_rows(*index, together);
  return order.loads >= kWorthAnotherKernel * order.natural_loads;
}

}  // namespace

const KernelDesc* choose_kernel(const BsrShape& matrix, const BsrIndex* index, sparsek_dtype dtype,
                                const PlanOptions& options, std::string& reason) {
  for (int i = 0; i < kKernelCount; ++i) {
    const KernelDesc& kernel = kKernels[i];
    if (options.kernel.empty() ? kernel.baseline : options.kernel != kernel.name) continue;
    const std::string why_not = obstacle(kernel, matrix, dtype, options);
    if (why_not.empty() && (!options.kernel.empty() || is_for(kernel, matrix, index, options))) {
      reason = options.kernel.empty() ? std::string("first of the list that serves the case: ") + kernel.why
                                      : "asked for by name";
      return &kernel;
    }
    if (!options.kernel.empty()) {
      fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve blocks of %dx%d here: %s", kernel.name, matrix.block_m,
           matrix.block_k, why_not.c_str());
    }
  }
  if (!options.kernel.empty()) fail(SPARSEK_NO_SUCH_KERNEL, "there is no CUDA kernel %s", options.kernel.c_str());
  fail(SPARSEK_UNSUPPORTED_BLOCK, "no CUDA kernel serves blocks of %dx%d of this type", matrix.block_m, matrix.block_k);
}

}  // namespace sparsek::cuda
