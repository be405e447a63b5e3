// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "abi/dtype.h"
#include "plan/plan.h"

namespace sparsek::cpu {

// The work list and the workers for a pattern and n columns: chunks of rows where cpu/row_rule.h says so, else tiles as
// large as a worker's scratch memory; smaller ones where there would be too few of them, and no more workers than the
// work keeps busy.
PlanShape choose_shape(const BsrShape& matrix, OperandTypes types, int64_t n, int threads);

// The same for blocks of a product of two dense matrices with an inner extent of n: chunks of blocks.
PlanShape choose_block_shape(const BsrShape& matrix, int64_t n, int threads);

}  // namespace sparsek::cpu
