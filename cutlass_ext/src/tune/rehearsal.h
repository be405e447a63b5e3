// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/backend.h"

namespace sparsek::tune {

// Operands of a back-end's own to time plans of one matrix and one set of options with: random B, C and bias.
class Rehearsal {
 public:
  virtual ~Rehearsal() = default;
  // Runs that many products, with whatever the caches hold, and waits for them.
  virtual void warm_up(PlanState& plan, int products) = 0;
  // Times that many products, each with caches that hold none of its operands, one behind the other on nothing that
  // others use; seconds[repeats] gets each one's time. alpha is 1 and beta is 0.
  virtual void time(PlanState& plan, int repeats, double* seconds) = 0;
};

}  // namespace sparsek::tune
