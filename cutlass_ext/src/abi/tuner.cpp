// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>

#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/plan_options.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

tune::TunerOptions resolve(const sparsek_tuner_options& given) {
  if (!(given.seconds >= 0)) fail(SPARSEK_BAD_ARGUMENT, "tuning->seconds = %g is not 0 or above", given.seconds);
  if (given.all != 0 && given.all != 1) {
    fail(SPARSEK_BAD_ARGUMENT, "tuning->all = %d is neither 0 nor 1", given.all);
  }
  return {given.seconds, given.all != 0};
}

void require_unfinished(const sparsek_tuner& tuner) {
  if (tuner.finished) fail(SPARSEK_BAD_ARGUMENT, "the tuner has given its plan: make another tuner");
}

}  // namespace

sparsek_status tuner_create(sparsek_matrix* matrix, const sparsek_plan_options* options,
                            const sparsek_tuner_options* tuning, sparsek_tuner** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(matrix, "matrix");
    const sparsek_plan_options known = read_struct(options, "options");
    const sparsek_tuner_options known_tuning = read_struct(tuning, "tuning");
    auto tuner = std::make_unique<sparsek_tuner>();
    tuner->matrix = matrix->shared;
    tuner->options = resolve_plan_options(known, *tuner->matrix->state);
    if (!tuner->options.kernel.empty()) {
      fail(SPARSEK_BAD_ARGUMENT, "options->kernel names %.100s: there is nothing to tune",
           tuner->options.kernel.c_str());
    }
    if (tuner->options.batch_invariant) {
      fail(SPARSEK_BAD_ARGUMENT, "options->flags: with SPARSEK_BATCH_INVARIANT there is nothing to tune");
    }
    if (tuner->options.op != SPARSEK_SDD) require_values(*tuner->matrix);
    tuner->matrix->state->check_index(true);  // plans of a faulty index would be measured without entries
    tuner->tuner = std::make_unique<tune::Tuner>(*tuner->matrix->backend, *tuner->matrix->state, tuner->options,
                                                 resolve(known_tuning));
    *out = tuner.release();
  });
}

sparsek_status tuner_step(sparsek_tuner* tuner, int32_t* candidate) noexcept {
  return guard([&] {
    require_not_null(candidate, "candidate");
    *candidate = -1;
    require_not_null(tuner, "tuner");
    require_unfinished(*tuner);
    *candidate = tuner->tuner->step();
  });
}

int32_t tuner_candidate_count(const sparsek_tuner* tuner) noexcept {
  return tuner == nullptr ? 0 : static_cast<int32_t>(tuner->tuner->trials().size());
}

sparsek_status tuner_candidate(const sparsek_tuner* tuner, int32_t index, sparsek_candidate_info* out) noexcept {
  return guard([&] {
    require_not_null(tuner, "tuner");
    const std::vector<tune::Trial>& trials = tuner->tuner->trials();
    if (index < 0 || static_cast<size_t>(index) >= trials.size()) {
      fail(SPARSEK_BAD_ARGUMENT, "there is no candidate %d: the tuner has %zu", index, trials.size());
    }
    const tune::Trial& trial = trials[index];
    sparsek_candidate_info info{};
    info.kernel = trial.candidate.kernel.c_str();
    info.note = trial.note.c_str();
    info.serves = trial.candidate.obstacle.empty();
    info.best = tuner->tuner->best() == index;
    info.runs = static_cast<int32_t>(trial.times.size());
    info.predicted_seconds = trial.candidate.predicted_seconds;
    if (!trial.times.empty()) {
      info.seconds = trial.median();
      info.spread = trial.spread();
    }
    info.setup_seconds = trial.setup_seconds;
    write_struct(out, info, "out");
  });
}

sparsek_status tuner_finish(sparsek_tuner* tuner, sparsek_plan** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(tuner, "tuner");
    require_unfinished(*tuner);
    auto plan = std::make_unique<sparsek_plan>();
    plan->matrix = tuner->matrix;
    plan->options = tuner->options;
    plan->choice = tune::conclude(*tuner->tuner, *tuner->matrix->backend, *tuner->matrix->state, tuner->options,
                                  tune::TuningMemory::process());
    plan->options.kernel = plan->choice.kernel;
    // Last, since it cannot fail: a tuner whose plan could not be made is as it was.
    plan->state = tuner->tuner->take_best();
    tuner->finished = true;
    *out = plan.release();
  });
}

void tuner_destroy(sparsek_tuner* tuner) noexcept { destroy(tuner); }

}  // namespace sparsek::entry
