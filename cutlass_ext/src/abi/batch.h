// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "abi/backend.h"
#include "sparsek.h"

namespace sparsek {

// The products of a batch, each with the defaults filled in, and checked like a product of its own. Throws Error.
std::vector<MultiplyArgs> resolve_batch(const sparsek_plan& plan, const sparsek_multiply_args& given);

}  // namespace sparsek
