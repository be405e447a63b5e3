// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/handles.h"
#include "sparsek.h"

namespace sparsek {

// A plan in memory of the caller's, of a matrix without values, for one call. Throws where the layout is not one of
// plan_measure, for such a back-end.
sparsek_plan open_plan_data(sparsek_context& context, const sparsek_plan_layout& layout, const void* memory);

}  // namespace sparsek
