// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/plan_options.h"
#include "abi/require.h"
#include "abi/served.h"

namespace sparsek::entry {
namespace {

// Makes the plan with the chosen kernel. Where there is not enough memory for the layout of A that it needs, and the
// kernel was not named by the caller, uses the next best kernel that needs none.
std::unique_ptr<PlanState> make_chosen(Backend& backend, MatrixState& state, PlanOptions options,
                                       tune::Choice& choice) {
  options.kernel = choice.kernel;
  try {
    return backend.make_plan(state, options);
  } catch (const Error& error) {
    const bool may_do_without = options.allow_dense && choice.by != SPARSEK_CHOSEN_BY_NAME;
    if (error.status() != SPARSEK_OUT_OF_MEMORY || !may_do_without) throw;
    options.kernel.clear();
    options.allow_dense = false;
    const std::string why = error.what();
    choice = tune::choose(backend, state, options, tune::TuningMemory::process());
    choice.reason += "; " + why;
    options.kernel = choice.kernel;
    return backend.make_plan(state, options);
  }
}

// What is known without waiting for the device.
sparsek_plan_info describe(const sparsek_plan& plan) {
  sparsek_plan_info info{};
  plan.state->info(info);
  const tune::Choice& choice = plan.choice;
  info.reason = choice.reason.c_str();
  info.chosen_by = choice.by;
  info.predicted_seconds = choice.predicted_seconds;
  info.measured_seconds = choice.measured_seconds;
  info.warning = choice.warning.c_str();
  return info;
}

std::unique_ptr<sparsek_plan> create(const sparsek_matrix& matrix, const sparsek_plan_options& options) {
  auto plan = std::make_unique<sparsek_plan>();
  plan->matrix = matrix.shared;
  plan->options = resolve_plan_options(options, *plan->matrix->state);
  Backend& backend = *plan->matrix->backend;
  MatrixState& state = *plan->matrix->state;
  tune::TuningMemory& measured = tune::TuningMemory::process();
  const auto choose = [&] { return tune::choose(backend, state, plan->options, measured); };
  plan->choice = state.is_async()
                     ? plan->matrix->choices->get(state.shape(), state.dtype, plan->options, measured.version(), choose)
                     : choose();
  if (options.tuning_seconds > 0 && plan->choice.by == SPARSEK_CHOSEN_BY_MODEL) {
    if (plan->options.op != SPARSEK_SDD) require_values(*plan->matrix);
    state.check_index(true);  // a plan of a faulty index would be measured without entries
    tune::Tuner tuner(backend, state, plan->options, {options.tuning_seconds, false});
    while (tuner.step() >= 0) continue;
    plan->choice = tune::conclude(tuner, backend, state, plan->options, tune::TuningMemory::process());
    plan->state = tuner.take_best();
  } else {
    plan->state = make_chosen(backend, state, plan->options, plan->choice);
  }
  plan->options.kernel = plan->choice.kernel;
  return plan;
}

}  // namespace

sparsek_status plan_create(sparsek_matrix* matrix, const sparsek_plan_options* options, sparsek_plan** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(matrix, "matrix");
    *out = create(*matrix, read_struct(options, "options")).release();
  });
}

sparsek_status plan_info(const sparsek_plan* plan, sparsek_plan_info* out) noexcept {
  return guard([&] {
    require_not_null(plan, "plan");
    const size_t size = checked_abi_size(out, "out");
    sparsek_plan_info info = describe(*plan);
    if (info.entries < 0) info.entries = plan->state->entries();
    // A caller whose struct lacks the counter does not wait for it.
    if (size > offsetof(sparsek_plan_info, recomputed)) info.recomputed = plan->state->recomputed();
    if (size > offsetof(sparsek_plan_info, digest)) info.digest = plan->state->digest();
    write_struct(out, info, "out");
  });
}

sparsek_status plan_describe(const sparsek_plan* plan, sparsek_plan_info* out) noexcept {
  return guard([&] {
    require_not_null(plan, "plan");
    checked_abi_size(out, "out");
    sparsek_plan_info info = describe(*plan);
    info.recomputed = -1;
    write_struct(out, info, "out");
  });
}

void plan_destroy(sparsek_plan* plan) noexcept { destroy(plan); }

sparsek_status plan_update(sparsek_plan* plan, const sparsek_bsr* index) noexcept {
  return guard_enqueue([&] {
    require_not_null(plan, "plan");
    const sparsek_bsr known = read_struct(index, "index");
    require_served(known);
    require_bsr(known);
    plan->state->update(with_its_blocks(known));
    if (known.values != nullptr) plan->matrix->has_values = true;
  });
}

void plan_release(sparsek_plan* plan, sparsek_stream stream) noexcept {
  if (plan != nullptr) end_in(backend_of(*plan), *plan->state, stream);
  destroy(plan);
}

}  // namespace sparsek::entry
