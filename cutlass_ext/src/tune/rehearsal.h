// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/backend.h"

namespace sparsek::tune {

// Random operands B, C and bias of a back-end, for timing plans of one matrix with one set of options.
class Rehearsal {
 public:
  virtual ~Rehearsal() = default;
  // Runs `products` products, without clearing the caches, and waits for them.
  virtual void warm_up(PlanState& plan, int products) = 0;
  // Times `repeats` products, one after the other on a separate stream, each with caches that hold none of its
  // operands. seconds: (repeats), the time of each. alpha is 1 and beta is 0.
  virtual void time(PlanState& plan, int repeats, double* seconds) = 0;
};

}  // namespace sparsek::tune
