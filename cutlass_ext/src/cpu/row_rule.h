// SPDX-License-Identifier: Apache-2.0
// Which products the row functions compute, and which the tile functions (cpu/kernel.h).
#pragma once

#include <cstdint>

#include "abi/dtype.h"

namespace sparsek::cpu {

// Tall blocks by many columns read each row of B for many rows: tiles pack it.
constexpr bool takes_rows(OperandTypes types, int64_t n, int32_t block_m) {
  return types.b == SPARSEK_FP64 || types.a != types.b || block_m <= 32 || n <= 48;
}

}  // namespace sparsek::cpu
