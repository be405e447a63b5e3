// SPDX-License-Identifier: Apache-2.0
#include "cuda/form_copies.h"

#include <cstring>

#include "abi/dtype.h"
#include "abi/product_form.h"
#include "cuda/find_kernel.h"
#include "cuda/pack_b.h"
#include "cuda/stage_lists.h"

namespace sparsek::cuda {
namespace {

constexpr int32_t kAlignmentOfCopies = 16;

bool is_column_major(sparsek_order order) { return order == SPARSEK_COLUMN_MAJOR; }

// It reads B and writes C in either order, but A's blocks by rows alone (cuda/skinny.cuh, cuda/wgmma_scatter.cuh).
bool takes_any_b_and_c(const KernelDesc& kernel) {
  return std::strcmp(kernel.family, "skinny") == 0 || scatters(kernel);
}

// Whether it reads a column-major B. Where stages of A begin at columns that are no multiples of 16 bytes, the copy
// engine does not: it stops with "illegal instruction". block_k: of op(A).
bool reads_columns_of_b(const KernelDesc& kernel, const PlanOptions& options, int32_t block_k) {
  constexpr int32_t kVector = 8;
  return !packs_b(kernel, options) && (!scatters(kernel) || stage_columns(block_k) % kVector == 0);
}

}  // namespace

FormCopies copies_for(const KernelDesc* kernel, const PlanOptions& options, const BsrShape& matrix) {
  const bool columns_b = is_column_major(options.order_b), columns_c = is_column_major(options.order_c);
  FormCopies copies;
  const bool any_a = kernel != nullptr && kernel->ops->any_major;
  copies.a = transposes_a(options.op) && !any_a;
  if (any_a || (kernel != nullptr && takes_any_b_and_c(*kernel))) {
    const int32_t block_k = transposes_a(options.op) ? matrix.block_m : matrix.block_k;
    copies.b = columns_b && !reads_columns_of_b(*kernel, options, block_k);
    return copies;
  }
  copies.b_to_columns = kernel != nullptr && cuts_to_tf32(*kernel);
  copies.b = columns_b != copies.b_to_columns;
  copies.c = columns_c;
  // One row of C for all is one column for all where the product is turned over.
  copies.input = columns_c || is_turned_over(options.op);
  return copies;
}

PlanOptions between_copies(const FormCopies& copies, const PlanOptions& options, int64_t inner) {
  PlanOptions between = options;
  if (copies.a) {
    between.op = is_turned_over(options.op) ? SPARSEK_DDS_T : SPARSEK_DSD;
    between.values_static = false;  // the copy is written with each product
  }
  if (copies.input) between.op = SPARSEK_DSD;
  if (copies.b) {
    between.order_b = copies.b_to_columns ? SPARSEK_COLUMN_MAJOR : SPARSEK_ROW_MAJOR;
    between.ldb = copy_pitch(copies.b_to_columns ? inner : options.n, options.dtype_b);
    between.alignment = kAlignmentOfCopies;
  }
  if (copies.c) {
    between.order_c = SPARSEK_ROW_MAJOR;
    between.ldc = copy_pitch(options.n, options.dtype_c);
    between.alignment_c = kAlignmentOfCopies;
  }
  return between;
}

int64_t copy_pitch(int64_t length, sparsek_dtype dtype) { return packed_pitch(length, dtype_bytes(dtype)); }

bool is_plain(const PlanOptions& options) {
  return options.op == SPARSEK_DSD && !is_column_major(options.order_b) && !is_column_major(options.order_c);
}

}  // namespace sparsek::cuda
