// SPDX-License-Identifier: Apache-2.0
// The choice of a plan's kernel, without measuring.
#pragma once

#include <memory>
#include <string>

#include "abi/backend.h"
#include "tune/tuner.h"
#include "tune/tuning_memory.h"

namespace sparsek::tune {

struct Choice {
  std::string kernel;
  std::string reason;  // for people
  sparsek_chosen_by by = SPARSEK_CHOSEN_BY_MODEL;
  double predicted_seconds = 0;  // 0: the model gave no prediction
  double measured_seconds = 0;   // 0: not measured
  std::string warning;           // from the tuning memory; empty where there is none
};

// The kernel that `options` names; else the fastest one measured for a similar product (in `memory`); else the one that
// the cost model predicts to be the fastest. With batch_invariant only the model decides, and for every n alike. A
// named kernel is not checked here. Throws SPARSEK_UNSUPPORTED_BLOCK where no kernel serves the product.
Choice choose(Backend& backend, const MatrixState& matrix, const PlanOptions& options, TuningMemory& memory);

// The winner of the tuner, which is not changed; stores the measurements in `memory`. Throws SPARSEK_BAD_ARGUMENT where
// nothing was measured.
Choice conclude(const Tuner& tuner, const Backend& backend, const MatrixState& matrix, const PlanOptions& options,
                TuningMemory& memory);

// The key under which the memory keeps measurements of this product. kept_values: whether plans of some candidates keep
// the matrix's values as their kernels read them.
TuningKey tuning_key(const Backend& backend, const MatrixState& matrix, const PlanOptions& options, bool kept_values);

}  // namespace sparsek::tune
