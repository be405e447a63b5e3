// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace sparsek {

// For each panel p: how many tiles of the list there are up to the last one of panels 0 to p. A product of so few
// columns needs no tile behind that.
std::vector<int32_t> panel_ends(const Plan& plan);

}  // namespace sparsek
