// SPDX-License-Identifier: Apache-2.0
#include "abi/plan_options.h"

#include <algorithm>
#include <cinttypes>

#include "abi/dtype.h"
#include "abi/error.h"
#include "abi/require.h"
#include "abi/served.h"

namespace sparsek {
namespace {

constexpr int32_t kDefaultAlignment = 16;
constexpr int32_t kLargestAlignment = 4096;

void require_alignment(int32_t alignment, int64_t least, const char* what) {
  if (alignment < least || alignment > kLargestAlignment || (alignment & (alignment - 1)) != 0) {
    fail(SPARSEK_BAD_ARGUMENT, "%s = %d is no power of two from %" PRId64 " (the element's size) to %d", what,
         alignment, least, kLargestAlignment);
  }
}

void require_compute(int32_t compute, sparsek_backend backend, sparsek_dtype dtype) {
  if (compute == SPARSEK_COMPUTE_EXACT) return;
  if (dtype != SPARSEK_FP32) {
    fail(SPARSEK_BAD_ARGUMENT,
         "options->compute = SPARSEK_COMPUTE_TF32 (1) is for matrices of fp32: use SPARSEK_COMPUTE_EXACT (0)");
  }
  if (backend == SPARSEK_CUDA) {
    fail(
        SPARSEK_BAD_ARGUMENT,
        "options->compute = SPARSEK_COMPUTE_TF32 (1) is not served by the CUDA back-end yet: use SPARSEK_COMPUTE_EXACT "
        "(0), or for the rate of tensor cores a matrix of bf16 or fp16");
  }
}

}  // namespace

PlanOptions resolve_plan_options(const sparsek_plan_options& given, const Backend& backend, const MatrixState& matrix) {
  require_served(given);
  require_compute(given.compute, backend.kind(), matrix.dtype);
  if (given.n < 0) fail(SPARSEK_BAD_SIZE, "options->n = %" PRId64 " is negative", given.n);

  PlanOptions options;
  options.n = given.n;
  options.ldb = given.ldb == 0 ? given.n : given.ldb;
  options.ldc = given.ldc == 0 ? given.n : given.ldc;
  options.alignment = given.alignment == 0 ? kDefaultAlignment : given.alignment;
  options.alignment_c = given.alignment_c == 0 ? options.alignment : given.alignment_c;
  if (given.kernel != nullptr) options.kernel = given.kernel;
  const int32_t dtype_c = given.dtype_c == 0 ? matrix.dtype : given.dtype_c;
  require_dtype_c(dtype_c, matrix.dtype, "options->dtype_c");
  require_epilogue(given.bias, "options->bias", given.activation, "options->activation");
  options.dtype_c = static_cast<sparsek_dtype>(dtype_c);
  options.bias = static_cast<sparsek_bias>(given.bias);
  options.activation = static_cast<sparsek_activation>(given.activation);
  options.allow_dense = given.allow_dense != 0;
  if (given.allow_dense != 0 && given.allow_dense != 1) {
    fail(SPARSEK_BAD_ARGUMENT, "options->allow_dense = %d is neither 0 nor 1", given.allow_dense);
  }
  options.batch_invariant = (given.flags & SPARSEK_BATCH_INVARIANT) != 0;
  options.own_kernels = options.batch_invariant || (given.flags & SPARSEK_OWN_KERNELS) != 0;
  options.user_cache = (given.flags & SPARSEK_NO_USER_CACHE) == 0;
  if (options.batch_invariant && given.tuning_seconds != 0) {
    fail(SPARSEK_BAD_ARGUMENT,
         "options->tuning_seconds = %g with SPARSEK_BATCH_INVARIANT: one kernel serves every n, and measuring for one "
         "of them could change it",
         given.tuning_seconds);
  }
  options.workers = given.workers;
  if (given.workers < 0) {
    fail(SPARSEK_BAD_ARGUMENT, "options->workers = %d is negative: 0 stands for all", given.workers);
  }
  options.values_static = given.values_static != 0;
  if (given.values_static != 0 && given.values_static != 1) {
    fail(SPARSEK_BAD_ARGUMENT, "options->values_static = %d is neither 0 nor 1", given.values_static);
  }
  if (!(given.tuning_seconds >= 0)) {
    fail(SPARSEK_BAD_ARGUMENT, "options->tuning_seconds = %g is not 0 or above", given.tuning_seconds);
  }

  const int64_t element_b = dtype_bytes(matrix.dtype), element_c = dtype_bytes(dtype_c);
  require_dense(matrix.shape().cols, options.n, options.ldb, element_b, "options->ldb");
  require_dense(matrix.shape().rows, options.n, options.ldc, element_c, "options->ldc");
  const int64_t least = std::min(element_b, element_c);
  require_alignment(options.alignment, least, "options->alignment");
  require_alignment(options.alignment_c, least, "options->alignment_c");
  return options;
}

}  // namespace sparsek
