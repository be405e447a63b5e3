// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>

#include "abi/abi_size.h"
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

  const int64_t element = dtype_bytes(matrix.dtype);
  require_dense(matrix.index.cols, options.n, options.ldb, element, "options->ldb");
  require_dense(matrix.index.rows, options.n, options.ldc, element, "options->ldc");
  const int32_t alignment = options.alignment;
  if (alignment < element || alignment > kLargestAlignment || (alignment & (alignment - 1)) != 0) {
    fail(SPARSEK_BAD_ARGUMENT, "options->alignment = %d is no power of two from %d (the element's size) to %d",
         alignment, static_cast<int>(element), kLargestAlignment);
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
    checked_abi_size(out, "out");
    sparsek_plan_info info{};
    plan->state->info(info);
    write_struct(out, info, "out");
  });
}

void plan_destroy(sparsek_plan* plan) noexcept { delete plan; }

}  // namespace sparsek::entry
