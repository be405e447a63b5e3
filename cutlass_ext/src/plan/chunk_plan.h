// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/plan.h"

namespace sparsek {

// A plan with shape.chunks chunks, for an index on the host. Throws as make_plan does.
Plan make_chunk_plan(const BsrIndex& index, const PlanShape& shape);

}  // namespace sparsek
