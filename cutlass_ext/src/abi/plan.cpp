// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cinttypes>
#include <cstddef>

#include "abi/abi_size.h"
#include "abi/dtype.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

constexpr int32_t kDefaultAlignment = 16;
constexpr int32_t kLargestAlignment = 4096;

// Fills in the defaults and checks what is left.
PlanOptions resolve(const sparsek_plan_options& given, const MatrixState& matrix) {
  if (given.n < 0) fail(SPARSEK_BAD_SIZE, "options->n = %" PRId64 " is negative", given.n);

  PlanOptions options;
  options.n = given.n;
  options.ldb = given.ldb == 0 ? given.n : given.ldb;
  options.ldc = given.ldc == 0 ? given.n : given.ldc;
  options.alignment = given.alignment == 0 ? kDefaultAlignment : given.alignment;
  if (given.kernel != nullptr) options.kernel = given.kernel;
  const int32_t dtype_c = given.dtype_c == 0 ? matrix.dtype : given.dtype_c;
  require_dtype(dtype_c, "options->dtype_c");
  require_epilogue(given.bias, "options->bias", given.activation, "options->activation");
  options.dtype_c = static_cast<sparsek_dtype>(dtype_c);
  options.bias = static_cast<sparsek_bias>(given.bias);
  options.activation = static_cast<sparsek_activation>(given.activation);

  const int64_t element_b = dtype_bytes(matrix.dtype), element_c = dtype_bytes(dtype_c);
  require_dense(matrix.shape().cols, options.n, options.ldb, element_b, "options->ldb");
  require_dense(matrix.shape().rows, options.n, options.ldc, element_c, "options->ldc");
  const int32_t alignment = options.alignment, least = static_cast<int32_t>(std::min(element_b, element_c));
  if (alignment < least || alignment > kLargestAlignment || (alignment & (alignment - 1)) != 0) {
    fail(SPARSEK_BAD_ARGUMENT, "options->alignment = %d is no power of two from %d (the element's size) to %d",
         alignment, least, kLargestAlignment);
  }
  return options;
}

}  // namespace

sparsek_status plan_create(sparsek_matrix* matrix, const sparsek_plan_options* options, sparsek_plan** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(matrix, "matrix");
    const sparsek_plan_options known = read_struct(options, "options");
    auto plan = std::make_unique<sparsek_plan>();
    plan->matrix = matrix->shared;
    plan->options = resolve(known, *plan->matrix->state);
    plan->state = plan->matrix->backend->make_plan(*plan->matrix->state, plan->options);
    *out = plan.release();
  });
}

sparsek_status plan_info(const sparsek_plan* plan, sparsek_plan_info* out) noexcept {
  return guard([&] {
    require_not_null(plan, "plan");
    const size_t size = checked_abi_size(out, "out");
    sparsek_plan_info info{};
    plan->state->info(info);
    // A caller that does not know of the counter does not wait for it.
    if (size > offsetof(sparsek_plan_info, recomputed)) info.recomputed = plan->state->recomputed();
    write_struct(out, info, "out");
  });
}

void plan_destroy(sparsek_plan* plan) noexcept { delete plan; }

}  // namespace sparsek::entry
