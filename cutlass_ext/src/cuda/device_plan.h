// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/device_index.h"
#include "cuda/plan_arrays.h"
#include "plan/plan.h"

namespace sparsek::cuda {

// The plan of make_plan for an index in device memory, made there by kernels in the stream of `memory`: the same, bit
// for bit, except that shape.most_parts is ignored, and shape.any_rows where there are too many block columns for
// may_match_rows (cuda/row_matching.h). One number comes back to the host, that of the entries, for the allocation.
// uses: of the products, as in PlanMemory::allocate. Complete when the call returns. Throws as make_plan does.
PlanArrays make_device_plan(const DeviceIndex& index, PlanShape shape, PlanMemory& memory, const StreamUses& uses);

}  // namespace sparsek::cuda
