// SPDX-License-Identifier: Apache-2.0
// Which operands of a product of the first form (abi/product_form.h) are copied to another order for its kernel.
#pragma once

#include "abi/backend.h"
#include "cuda/kernel.h"

namespace sparsek::cuda {

// Those that the kernel does not read, or write, as they lie.
struct FormCopies {
  bool a = false, b = false, c = false;
  bool b_to_columns = false;  // the copy of B is column-major, else row-major
  // What beta is multiplied with, where a product gives it so that it lies across the C of the kernel.
  bool input = false;

  bool any() const { return a || b || c || input; }
};

// kernel: null where it is none of ours. matrix: A as it is stored.
FormCopies copies_for(const KernelDesc* kernel, const PlanOptions& options, const BsrShape& matrix);

// The options of the product between the copies. inner: rows of B.
PlanOptions between_copies(const FormCopies& copies, const PlanOptions& options, int64_t inner);

// The pitch of the copy of B or C, which has lines of so many elements.
int64_t copy_pitch(int64_t length, sparsek_dtype dtype);

// Whether the product is A B with row-major operands.
bool is_plain(const PlanOptions& options);

}  // namespace sparsek::cuda
