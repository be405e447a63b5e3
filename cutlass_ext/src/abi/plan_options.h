// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/backend.h"
#include "sparsek.h"

namespace sparsek {

// Checks the caller's options of a plan and returns them with the defaults filled in; tuning_seconds is only checked.
// Throws Error.
PlanOptions resolve_plan_options(const sparsek_plan_options& given, const MatrixState& matrix);

}  // namespace sparsek
