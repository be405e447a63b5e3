// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "abi/dtype.h"
#include "cpu/kernel.h"
#include "plan/bsr_index.h"

namespace sparsek::cpu {

// Seconds that a product with n columns takes with `kernel` and this many threads, within a factor of about 2 on the
// processor that the coefficients were fitted on. Another one is faster or slower as a whole, which the choice of a
// kernel does not depend on.
double predict(const Kernel& kernel, const BsrShape& matrix, OperandTypes types, int64_t n, int threads);

// The same for blocks of a product of two dense matrices whose inner extent is n.
double predict_blocks(const Kernel& kernel, const BsrShape& matrix, sparsek_dtype dtype, int64_t n, int threads);

}  // namespace sparsek::cpu
