// SPDX-License-Identifier: Apache-2.0
// The check of products in fp64, in the 64 bits of the x87's long double.
#pragma once

#include <cstdint>

#include "cpu/check_judge.h"
#include "sparsek.h"

namespace sparsek::cpu {

// Judges row `row` of C, which is row `in_block` of its block row. B and C are of fp64, A of any type.
void check_row_fp64(const sparsek_check_args& args, int64_t block_row, int64_t in_block, int64_t row, Tally& tally);

// The reference of an element and its bound, of sums of `products` products with 64 bits of fraction.
Reference reference_fp64(const sparsek_check_args& args, long double sum, long double magnitude, int64_t products,
                         double c0, double bias);

}  // namespace sparsek::cpu
