// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "abi/backend.h"
#include "cuda/plan_memory.h"

namespace sparsek::cuda {

// Throws SPARSEK_NO_SUCH_KERNEL where no kernel serves this attention, and says why. Of the multiprocessors as many are
// used as there are, or shape.workers.
std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, const AttentionLayout& layout,
                                               const std::string& kernel, PlanMemory& memory, int device, int sm_count,
                                               size_t l2_bytes);
// Of a layout in device memory, which with SPARSEK_BSR_ASYNC nothing waits for.
std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, const sparsek_bsr& layout,
                                               const std::string& kernel, PlanMemory& memory, int device, int sm_count,
                                               size_t l2_bytes);

}  // namespace sparsek::cuda
