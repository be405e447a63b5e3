// SPDX-License-Identifier: Apache-2.0
// Which kernel a plan gets, without measuring.
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
  double predicted_seconds = 0;  // 0: no word of the model
  double measured_seconds = 0;   // 0: not measured
  std::string warning;           // of the tuner's memory; empty where there is none
};

// What was measured of a like product before (in `memory`), else what the cost model thinks fastest; where `options`
// names a kernel, that one. Throws SPARSEK_UNSUPPORTED_BLOCK where no kernel serves, and SPARSEK_NO_SUCH_KERNEL where
// the one named does not exist or does not serve.
Choice choose(Backend& backend, const MatrixState& matrix, const PlanOptions& options, TuningMemory& memory);

// The plan of the tuner's winner, with `choice` rewritten; what was measured goes into `memory`. Throws
// SPARSEK_BAD_ARGUMENT where nothing was measured.
std::unique_ptr<PlanState> finish(Tuner& tuner, const Backend& backend, const MatrixState& matrix,
                                  const PlanOptions& options, Choice& choice, TuningMemory& memory);

// The product as the memory knows it.
TuningKey tuning_key(const Backend& backend, const MatrixState& matrix, const PlanOptions& options);

}  // namespace sparsek::tune
