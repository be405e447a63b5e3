// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cinttypes>
#include <string>
#include <vector>

#include "abi/abi_size.h"
#include "abi/dtype.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"
#include "abi/served.h"

namespace sparsek::entry {
namespace {

int64_t planned(int64_t given, int64_t planned, const char* what) {
  if (given != 0 && given != planned) {
    fail(SPARSEK_BAD_LEADING_DIMENSION,
         "%s = %" PRId64 " is not the %" PRId64 " that was planned for: make another plan", what, given, planned);
  }
  return planned;
}

// A bias that is not read would be an unnoticed mistake of the caller.
void require_bias(const void* bias, const PlanOptions& options, const BsrShape& shape) {
  if (options.bias == SPARSEK_BIAS_NONE) {
    if (bias != nullptr) {
      fail(SPARSEK_BAD_ARGUMENT, "args->bias is given to a plan without one: set options->bias when it is made");
    }
    return;
  }
  if (shape.rows > 0 && options.n > 0) require_not_null(bias, "args->bias");
  require_aligned(bias, dtype_bytes(options.dtype_c), "args->bias");
}

// An operand's address, for the alignment that the plan was made for, which is at least its element's.
void require_planned_alignment(const void* pointer, int32_t alignment, int64_t element, const char* what) {
  const auto wanted = static_cast<uintptr_t>(std::max<int64_t>(alignment, element));
  if (reinterpret_cast<uintptr_t>(pointer) % wanted == 0) return;
  if (reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(element) != 0) {
    return require_aligned(pointer, element, what);
  }
  fail(SPARSEK_MISALIGNED,
       "%s = %p is not aligned to %zu bytes, as the plan expects: align it, or set options->alignment when the plan is "
       "made",
       what, pointer, static_cast<size_t>(wanted));
}

// What is written must not be read by the same product, whose elements are computed in any order.
void require_apart(const MultiplyArgs& args, const PlanOptions& options, const MatrixState& matrix) {
  const int64_t element_b = dtype_bytes(matrix.dtype), element_c = dtype_bytes(options.dtype_c);
  const BsrShape& shape = matrix.shape();
  const ByteRows c = {args.c, shape.rows, options.n * element_c, args.ldc * element_c};
  if (overlap(c, {args.b, shape.cols, options.n * element_b, args.ldb * element_b})) {
    fail(SPARSEK_BAD_ARGUMENT, "args->b and args->c overlap: a product needs a C of its own");
  }
  if (args.bias == nullptr) return;
  const int64_t bias_bytes = (options.bias == SPARSEK_BIAS_ROW ? shape.rows : options.n) * element_c;
  if (overlap(c, {args.bias, 1, bias_bytes, bias_bytes})) {
    fail(SPARSEK_BAD_ARGUMENT, "args->bias and args->c overlap: a product needs a C of its own");
  }
}

// Fills in the defaults and checks what is left. An operand without elements may be null.
MultiplyArgs resolve(const sparsek_plan& plan, const sparsek_multiply_args& given) {
  const PlanOptions& options = plan.options;
  require_served(given);
  require_values(*plan.matrix);
  require_finite(given.alpha, "args->alpha");
  require_finite(given.beta, "args->beta");
  MultiplyArgs args;
  args.alpha = given.alpha;
  args.beta = given.beta;
  args.b = given.b;
  args.ldb = planned(given.ldb, options.ldb, "args->ldb");
  args.c = given.c;
  args.ldc = planned(given.ldc, options.ldc, "args->ldc");
  args.stream = given.stream;
  const BsrShape& shape = plan.matrix->state->shape();
  if (shape.cols > 0 && options.n > 0) require_not_null(args.b, "args->b");
  if (shape.rows > 0 && options.n > 0) require_not_null(args.c, "args->c");
  require_planned_alignment(args.b, options.alignment, dtype_bytes(plan.matrix->state->dtype), "args->b");
  require_planned_alignment(args.c, options.alignment, dtype_bytes(options.dtype_c), "args->c");
  require_bias(given.bias, options, shape);
  args.bias = given.bias;
  require_apart(args, options, *plan.matrix->state);
  return args;
}

void require_repeats(int32_t warmup, int32_t repeats) {
  if (warmup < 0) fail(SPARSEK_BAD_SIZE, "warmup = %d is negative", warmup);
  if (repeats < 1) fail(SPARSEK_BAD_SIZE, "repeats = %d is below 1", repeats);
}

// Element i of the caller's array, whose stride is the size of the caller's struct.
const sparsek_multiply_args* element(const sparsek_multiply_args* args, int32_t i) {
  const size_t stride = args->abi_size;
  const auto* const found = reinterpret_cast<const sparsek_multiply_args*>(reinterpret_cast<const char*>(args) +
                                                                           static_cast<size_t>(i) * stride);
  if (found->abi_size != stride) {
    fail(SPARSEK_BAD_ABI_SIZE, "args[%d].abi_size is %zu and args[0].abi_size is %zu", i, found->abi_size, stride);
  }
  return found;
}

}  // namespace

sparsek_status multiply(sparsek_plan* plan, const sparsek_multiply_args* args) noexcept {
  return guard_enqueue([&] {
    require_not_null(plan, "plan");
    plan->state->multiply(resolve(*plan, read_struct(args, "args")));
  });
}

sparsek_status multiply_time(sparsek_plan* plan, const sparsek_multiply_args* args, int32_t arg_count, int32_t warmup,
                             int32_t repeats, double* seconds) noexcept {
  return guard([&] {
    require_not_null(plan, "plan");
    checked_abi_size(args, "args");
    require_not_null(seconds, "seconds");
    if (arg_count < 1) fail(SPARSEK_BAD_SIZE, "arg_count = %d is below 1", arg_count);
    require_repeats(warmup, repeats);
    std::vector<MultiplyArgs> resolved;
    for (int32_t i = 0; i < arg_count; ++i) resolved.push_back(resolve(*plan, read_struct(element(args, i), "args")));
    plan->state->multiply_time(resolved.data(), arg_count, warmup, repeats, seconds);
  });
}

sparsek_status graph_time(sparsek_plan* const* plans, const sparsek_multiply_args* args, int32_t count, int32_t warmup,
                          int32_t repeats, double* seconds) noexcept {
  return guard([&] {
    require_not_null(plans, "plans");
    checked_abi_size(args, "args");
    require_not_null(seconds, "seconds");
    if (count < 1) fail(SPARSEK_BAD_SIZE, "count = %d is below 1", count);
    require_repeats(warmup, repeats);
    std::vector<PlanState*> states;
    std::vector<MultiplyArgs> resolved;
    for (int32_t i = 0; i < count; ++i) {
      require_not_null(plans[i], ("plans[" + std::to_string(i) + "]").c_str());
      if (plans[i]->matrix->backend != plans[0]->matrix->backend) {
        fail(SPARSEK_BAD_ARGUMENT, "plans[%d] is of another context than plans[0]", i);
      }
      states.push_back(plans[i]->state.get());
      resolved.push_back(resolve(*plans[i], read_struct(element(args, i), "args")));
    }
    plans[0]->matrix->backend->graph_time(states.data(), resolved.data(), count, warmup, repeats, seconds);
  });
}

}  // namespace sparsek::entry
