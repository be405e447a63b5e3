// SPDX-License-Identifier: Apache-2.0
// Attention of the CPU back-end: cuts a call into tiles, which threads take.
#pragma once

#include <memory>
#include <string>

#include "abi/backend.h"
#include "cpu/cpu_plan.h"

namespace sparsek::cpu {

std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, AttentionLayout layout,
                                               const std::string& kernel, std::shared_ptr<Workers> workers);

}  // namespace sparsek::cpu
