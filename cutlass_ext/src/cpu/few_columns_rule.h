// SPDX-License-Identifier: Apache-2.0
// Which tiles few_columns.h computes. Each file that includes this has a copy of its own, for its instruction set.
#pragma once

#include <cstdint>

namespace sparsek::cpu {
namespace {

// One column, or few columns by blocks so low that the rows of a strip would be empty for the most part.
constexpr bool has_few_columns(int64_t columns, int32_t block_m) {
  return columns == 1 ? block_m <= 64 : columns <= 3 && block_m <= 8;
}

}  // namespace
}  // namespace sparsek::cpu
