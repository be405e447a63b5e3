// SPDX-License-Identifier: Apache-2.0
#include "abi/plan_options.h"

#include <algorithm>
#include <cinttypes>

#include "abi/dtype.h"
#include "abi/error.h"
#include "abi/product_form.h"
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

void require_compute(int32_t compute, sparsek_dtype dtype, int32_t dtype_b) {
  if (compute == SPARSEK_COMPUTE_EXACT || (dtype == SPARSEK_FP32 && dtype_b == SPARSEK_FP32)) return;
  fail(SPARSEK_BAD_ARGUMENT,
       "options->compute = SPARSEK_COMPUTE_TF32 (1) is for matrices of fp32, with B of fp32: use "
       "SPARSEK_COMPUTE_EXACT (0)");
}

// The product, its orders and leading dimensions; the types are known.
void resolve_operands(const sparsek_plan_options& given, const MatrixState& matrix, PlanOptions& options) {
  const BsrShape& shape = matrix.shape();
  options.op = static_cast<sparsek_op>(given.op);
  options.order_b = static_cast<sparsek_order>(order_in_form(given.op, given.order_b));
  options.order_c = static_cast<sparsek_order>(order_in_form(given.op, given.order_c));
  options.order_x = static_cast<sparsek_order>(given.order_x);
  const auto require = [&](const Lines& lines, int64_t ld, int32_t dtype, const char* name) {
    require_dense(lines.count, lines.length, ld, dtype_bytes(dtype), name);
  };
  const Lines b = lines_of_b(given.op, shape, given.n, options.order_b);
  options.ldb = given.ldb == 0 ? b.length : given.ldb;
  require(b, options.ldb, options.dtype_b, "options->ldb");
  const Lines c = lines_of_c(given.op, shape, given.n, options.order_c);
  options.ldc = given.ldc == 0 ? c.length : given.ldc;
  require(c, options.ldc, options.dtype_c, "options->ldc");
  const Lines x = lines_of_x(shape, given.n, options.order_x);
  options.ldx = given.ldx == 0 ? x.length : given.ldx;
  if (given.op == SPARSEK_SDD) require(x, options.ldx, matrix.dtype, "options->ldx");
}

}  // namespace

PlanOptions resolve_plan_options(const sparsek_plan_options& given, const MatrixState& matrix) {
  require_served(given);
  if (given.n < 0) fail(SPARSEK_BAD_SIZE, "options->n = %" PRId64 " is negative", given.n);

  PlanOptions options;
  options.n = given.n;
  options.alignment = given.alignment == 0 ? kDefaultAlignment : given.alignment;
  options.alignment_c = given.alignment_c == 0 ? options.alignment : given.alignment_c;
  if (given.kernel != nullptr) options.kernel = given.kernel;
  const int32_t dtype_b = given.dtype_b == 0 ? matrix.dtype : given.dtype_b;
  require_dtype_b(dtype_b, matrix.dtype, "options->dtype_b");
  require_plain_where_mixed({matrix.dtype, static_cast<sparsek_dtype>(dtype_b)}, given.op, given.order_b, given.order_c,
                            "options->dtype_b");
  require_compute(given.compute, matrix.dtype, dtype_b);
  options.tf32 = given.compute == SPARSEK_COMPUTE_TF32;
  const int32_t dtype_c = given.dtype_c == 0 ? dtype_b : given.dtype_c;
  require_dtype_c(dtype_c, dtype_b, "options->dtype_c");
  require_epilogue(given.bias, "options->bias", given.activation, "options->activation");
  options.dtype_b = static_cast<sparsek_dtype>(dtype_b);
  options.dtype_c = static_cast<sparsek_dtype>(dtype_c);
  options.bias = static_cast<sparsek_bias>(bias_in_form(given.op, given.bias));
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

  resolve_operands(given, matrix, options);
  const int64_t least = std::min(dtype_bytes(dtype_b), dtype_bytes(dtype_c));
  require_alignment(options.alignment, least, "options->alignment");
  require_alignment(options.alignment_c, least, "options->alignment_c");
  return options;
}

}  // namespace sparsek
