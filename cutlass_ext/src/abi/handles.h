// SPDX-License-Identifier: Apache-2.0
// The structs behind the opaque handles. Each shares ownership of the object it depends on, so that handles may be
// destroyed in any order. Members are destroyed last to first: a plan before its matrix, a matrix before its back-end.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "abi/backend.h"
#include "abi/guard.h"
#include "tune/choice.h"
#include "tune/recent_choices.h"
#include "tune/tuner.h"

namespace sparsek {

struct Matrix {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<tune::RecentChoices> choices;  // of the context
  std::unique_ptr<MatrixState> state;
  std::atomic<bool> has_values{false};  // a pattern may be given before its values
};

}  // namespace sparsek

struct sparsek_context {
  std::shared_ptr<sparsek::Backend> backend;
  std::shared_ptr<sparsek::tune::RecentChoices> choices = std::make_shared<sparsek::tune::RecentChoices>();
  std::string reason;  // why this back-end
  bool gpu_fault = false;
};

struct sparsek_matrix {
  std::shared_ptr<sparsek::Matrix> shared;
};

struct sparsek_plan {
  std::shared_ptr<sparsek::Matrix> matrix;
  sparsek::PlanOptions options;  // including the chosen kernel
  sparsek::tune::Choice choice;
  std::unique_ptr<sparsek::PlanState> state;
};

struct sparsek_attention {
  std::shared_ptr<sparsek::Backend> backend;
  sparsek::AttentionShape shape;
  sparsek::AttentionWork work;
  std::unique_ptr<sparsek::AttentionState> state;
};

struct sparsek_sm_hold {
  std::shared_ptr<sparsek::Backend> backend;
  std::unique_ptr<sparsek::SmHold> state;
};

struct sparsek_tuner {
  std::shared_ptr<sparsek::Matrix> matrix;
  sparsek::PlanOptions options;
  std::unique_ptr<sparsek::tune::Tuner> tuner;
  bool finished = false;
};

namespace sparsek {

inline const Backend& backend_of(const sparsek_context& context) { return *context.backend; }
inline const Backend& backend_of(const sparsek_matrix& matrix) { return *matrix.shared->backend; }
inline const Backend& backend_of(const sparsek_plan& plan) { return *plan.matrix->backend; }
inline const Backend& backend_of(const sparsek_attention& attention) { return *attention.backend; }
inline const Backend& backend_of(const sparsek_sm_hold& hold) { return *hold.backend; }
inline const Backend& backend_of(const sparsek_tuner& tuner) { return *tuner.matrix->backend; }

// Destroys a handle, or forgets it where its back-end is lost.
template <class Handle>
void destroy(Handle* handle) noexcept {
  if (handle == nullptr || backend_of(*handle).is_lost()) return;
  const CaptureScope scope;
  delete handle;
}

// State::end_in, of a matrix or a plan. Where that fails, the state ends as it would without.
template <class State>
void end_in(const Backend& backend, State& state, sparsek_stream stream) noexcept {
  if (backend.is_lost()) return;
  const CaptureScope scope;
  try {
    state.end_in(stream);
  } catch (...) {
  }
}

}  // namespace sparsek
