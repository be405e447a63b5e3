// SPDX-License-Identifier: Apache-2.0
// The check of blocks of a product of two dense matrices (SPARSEK_SDD).
#pragma once

#include "plan/bsr_index.h"
#include "sparsek.h"

namespace sparsek::cpu {

// Compares every element of the blocks with fp64, or fp64 with 64 bits of fraction. index: that of args.a; arguments
// were checked at the edge, and the defaults are filled in.
void check_blocks(const sparsek_check_args& args, const BsrIndex& index, sparsek_check_report& report);

}  // namespace sparsek::cpu
