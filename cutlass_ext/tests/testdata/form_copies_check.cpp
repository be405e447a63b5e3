// SPDX-License-Identifier: Apache-2.0
// Which operands of a product are copied for a kernel that reads every order, for one that reads rows, for one that
// reads the columns of B, and for one that reads every order of B and C alone. Prints the first wrong answer and exits
// with 1.
#include <cstdio>
#include <cstdlib>

#include "abi/error.h"
#include "abi/product_form.h"
#include "cuda/form_copies.h"

namespace sparsek::cuda {
namespace {

constexpr KernelOps ops(bool any_major) {
  KernelOps made = {};
  made.tma_b = true;
  made.any_major = any_major;
  return made;
}

constexpr KernelOps kEvery = ops(true), kRows = ops(false);

}  // namespace

extern const KernelDesc kKernels[] = {
    {"every", "a", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 64, true, 64, false, &kEvery},
    {"rows", "b", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 64, true, 64, false, &kRows},
    {"columns", "wgmma_tf32", "", SPARSEK_FP32, SPARSEK_FP32, 128, 256, 32, 4, 64, true, 32, false, &kRows},
    {"every of B and C", "skinny", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 64, true, 64, false, &kRows},
    {"scattered", "wgmma_scatter", "", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 1, true, 1, false, &kRows},
};
extern const int kKernelCount = 5;

}  // namespace sparsek::cuda

namespace {

using namespace sparsek;
using namespace sparsek::cuda;

constexpr int64_t kRowsOfB = 104;

BsrShape matrix_of(int32_t block_m, int32_t block_k) {
  BsrShape shape = {};
  shape.block_m = block_m;
  shape.block_k = block_k;
  return shape;
}

// As it is asked for.
PlanOptions product(sparsek_op op, int32_t order_b, int32_t order_c) {
  PlanOptions options = {};
  options.op = op;
  options.order_b = static_cast<sparsek_order>(order_in_form(op, order_b));
  options.order_c = static_cast<sparsek_order>(order_in_form(op, order_c));
  options.n = 40;
  options.ldb = options.ldc = 64;
  options.alignment = options.alignment_c = 16;
  options.dtype_b = options.dtype_c = SPARSEK_BF16;
  options.values_static = true;
  return options;
}

void expect(bool holds, const char* what, sparsek_op op, int32_t order_b, int32_t order_c) {
  if (holds) return;
  std::printf("wrong: %s, op %d, orders %d and %d\n", what, op, order_b, order_c);
  std::exit(1);
}

}  // namespace

int main() {
  const BsrShape matrix = matrix_of(64, 64);
  for (const sparsek_op op : {SPARSEK_DSD, SPARSEK_DSD_T, SPARSEK_DDS, SPARSEK_DDS_T}) {
    for (const int32_t b : {SPARSEK_ROW_MAJOR, SPARSEK_COLUMN_MAJOR}) {
      for (const int32_t c : {SPARSEK_ROW_MAJOR, SPARSEK_COLUMN_MAJOR}) {
        PlanOptions options = product(op, b, c);
        const bool across_b = options.order_b == SPARSEK_COLUMN_MAJOR,
                   across_c = options.order_c == SPARSEK_COLUMN_MAJOR;
        expect(!copies_for(&kKernels[0], options, matrix).any(), "a copy for the kernel that reads every order", op, b,
               c);
        const PlanOptions as_they_lie = between_copies(copies_for(&kKernels[0], options, matrix), options, kRowsOfB);
        expect(as_they_lie == options, "other options where nothing is copied", op, b, c);

        const FormCopies of_a = copies_for(&kKernels[3], options, matrix);
        expect(of_a.a == transposes_a(op) && !of_a.b && !of_a.c && !of_a.input,
               "a copy for the kernel of every B and C", op, b, c);
        const PlanOptions turned = between_copies(of_a, options, kRowsOfB);
        expect(!transposes_a(turned.op) && is_turned_over(turned.op) == is_turned_over(op) &&
                   turned.order_b == options.order_b && turned.order_c == options.order_c &&
                   turned.values_static == !of_a.a,
               "the product of a copy of A", op, b, c);
        for (const KernelDesc* const kernel : {&kKernels[1], static_cast<const KernelDesc*>(nullptr)}) {
          const FormCopies copies = copies_for(kernel, options, matrix);
          expect(copies.a == transposes_a(op) && copies.b == across_b && copies.c == across_c, "what is copied", op, b,
                 c);
          expect(copies.input == (across_c || is_turned_over(op)), "the copy of the input", op, b, c);
          const PlanOptions between = between_copies(copies, options, kRowsOfB);
          expect(is_plain(between), "a plan between copies that is not plain", op, b, c);
          expect(between.ldb == (across_b ? 40 : 64) && between.ldc == (across_c ? 40 : 64), "pitches", op, b, c);
          expect(between.values_static == !copies.a, "values_static", op, b, c);
        }

        // Stages of blocks of 12 have 60 columns, which begin at no multiple of 16 bytes of a column of B.
        const int32_t height = transposes_a(op) ? 4 : 12, width = 16 - height;  // blocks of op(A) are 4 columns wide
        const FormCopies aligned = copies_for(&kKernels[4], options, matrix_of(height, width)),
                         anywhere = copies_for(&kKernels[4], options, matrix_of(width, height));
        expect(!aligned.b && !aligned.c && aligned.a == transposes_a(op), "copies for stages of 64 columns", op, b, c);
        expect(anywhere.b == across_b && !anywhere.c && anywhere.a == transposes_a(op),
               "what is copied for stages of 60 columns", op, b, c);

        const FormCopies columns = copies_for(&kKernels[2], options, matrix);
        expect(columns.b != across_b && columns.b_to_columns && columns.a == transposes_a(op) && columns.c == across_c,
               "what is copied for the kernel that reads columns", op, b, c);
        const PlanOptions read = between_copies(columns, options, kRowsOfB);
        expect(read.order_b == SPARSEK_COLUMN_MAJOR && read.ldb == (across_b ? 64 : kRowsOfB), "columns of B", op, b,
               c);

        options.ldb = 66;
        const FormCopies unaligned = copies_for(&kKernels[0], options, matrix);
        expect(unaligned.b == across_b && !unaligned.a && !unaligned.c && !unaligned.input, "copies of an unaligned B",
               op, b, c);
        const PlanOptions between = between_copies(unaligned, options, kRowsOfB);
        expect(between.order_b == SPARSEK_ROW_MAJOR && between.order_c == options.order_c && between.op == op,
               "the order of an unaligned B", op, b, c);
      }
    }
  }
  return 0;
}
