// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "abi/backend.h"

namespace sparsek::cuda {

// For kernels that add beta C alone: copies c_in, `rows` rows of elements of C's type, to C, in the product's stream.
// Nothing where c_in is C, or where beta is 0. Returns the arguments with C as its own input.
MultiplyArgs with_input_in_c(MultiplyArgs args, int64_t rows, sparsek_dtype dtype_c);

}  // namespace sparsek::cuda
