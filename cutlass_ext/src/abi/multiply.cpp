// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "abi/abi_size.h"
#include "abi/batch.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/multiply_args.h"
#include "abi/plan_data.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

void require_batch(const sparsek_multiply_args& given) {
  if (given.batch < 0) fail(SPARSEK_BAD_SIZE, "args->batch = %d is negative", given.batch);
}

// For functions that time products one by one.
MultiplyArgs resolve_single(const sparsek_plan& plan, const sparsek_multiply_args& given) {
  require_batch(given);
  if (given.batch > 1) fail(SPARSEK_BAD_ARGUMENT, "args->batch = %d: single products are timed", given.batch);
  return resolve_multiply_args(plan, given);
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

void enqueue(const sparsek_plan& plan, const sparsek_multiply_args& given) {
  require_batch(given);
  if (given.batch <= 1) return plan.state->multiply(resolve_multiply_args(plan, given));
  for (const MultiplyArgs& product : resolve_batch(plan, given)) plan.state->multiply(product);
}

}  // namespace

sparsek_status multiply(sparsek_plan* plan, const sparsek_multiply_args* args) noexcept {
  return guard_enqueue([&] {
    require_not_null(plan, "plan");
    enqueue(*plan, read_struct(args, "args"));
  });
}

sparsek_status plan_run(sparsek_context* context, const sparsek_plan_layout* layout, const void* memory,
                        const sparsek_multiply_args* args) noexcept {
  return guard_enqueue([&] {
    require_not_null(context, "context");
    const sparsek_multiply_args given = read_struct(args, "args");
    const sparsek_plan plan = open_plan_data(*context, read_struct(layout, "layout"), memory);
    const bool reads_values = plan.options.op != SPARSEK_SDD && plan.matrix->state->shape().nnzb > 0;
    if (reads_values) require_not_null(given.values, "args->values");
    enqueue(plan, given);
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
    for (int32_t i = 0; i < arg_count; ++i)
      resolved.push_back(resolve_single(*plan, read_struct(element(args, i), "args")));
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
      resolved.push_back(resolve_single(*plans[i], read_struct(element(args, i), "args")));
    }
    plans[0]->matrix->backend->graph_time(states.data(), resolved.data(), count, warmup, repeats, seconds);
  });
}

}  // namespace sparsek::entry
