// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/backend.h"
#include "sparsek.h"

namespace sparsek {

// sparsek_multiply_args.ldc_in where c_in is one row for all rows of C.
constexpr int64_t kOneRow = -1;

// The arguments of one product of the plan with the defaults filled in, checked as far as the host can; the members of
// batches are not looked at. Throws Error, naming the argument.
MultiplyArgs resolve_multiply_args(const sparsek_plan& plan, const sparsek_multiply_args& given);

// The sizes that C follows from: those of the matrix, but of SPARSEK_SDD with the blocks that this plan writes, since
// another plan of the matrix may have got a new index.
BsrShape written_shape(const sparsek_plan& plan);

}  // namespace sparsek
