// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/backend.h"
#include "sparsek.h"

namespace sparsek {

// The options of a plan as given, checked, with the defaults filled in; all but tuning_seconds, which is only checked.
// Throws Error.
PlanOptions resolve_plan_options(const sparsek_plan_options& given, const MatrixState& matrix);

}  // namespace sparsek
