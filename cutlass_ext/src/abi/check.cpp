// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cstring>
#include <utility>
#include <vector>

#include "abi/abi_size.h"
#include "abi/backend.h"
#include "abi/dtype.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/product_form.h"
#include "abi/require.h"
#include "abi/served.h"
#include "cpu/check_blocks.h"
#include "cpu/check_forms.h"

namespace sparsek::entry {
namespace {

// A matrix whose index is int32 and sorted, with the blocks of values in its order: what the reference reads.
struct PlainMatrix {
  BsrIndex index;
  std::vector<char> values;

  // Replaces the arrays of `bsr` by those in this, where they are of another kind; its index was checked.
  void replace(sparsek_bsr& bsr, BsrIndex&& checked) {
    const bool is_plain = bsr.index_type != SPARSEK_INT16 && bsr.block_idx == nullptr && checked.block_idx.empty();
    if (is_plain) return;
    index = std::move(checked);
    if (!index.block_idx.empty()) {
      const size_t bytes = static_cast<size_t>(bsr.block_m * bsr.block_k * dtype_bytes(bsr.dtype));
      values.resize(bytes * index.block_idx.size());
      for (size_t i = 0; i < index.block_idx.size(); ++i) {
        std::memcpy(values.data() + i * bytes, static_cast<const char*>(bsr.values) + index.block_idx[i] * bytes,
                    bytes);
      }
      bsr.values = values.data();
    }
    bsr.row_ptr = index.row_ptr.data();
    bsr.col_idx = index.col_idx.data();
    bsr.index_type = SPARSEK_INT32;
    bsr.block_idx = nullptr;
    bsr.flags = 0;
  }
};

void require_host_bsr(const sparsek_bsr& bsr) {
  require_bsr(bsr);
  if (bsr.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "args->a->memory is not SPARSEK_HOST: the check takes host arrays");
  }
}

// Makes the matrix one that the reference can read, with arrays in `plain`.
void require_host_values(sparsek_bsr& bsr, PlainMatrix& plain) {
  if (bsr.nnzb > 0) require_not_null(bsr.values, "args->a->values");
  plain.replace(bsr, make_bsr_index(bsr));
}

// Operand b, c or x, as it lies in memory. The matrix was checked.
Lines lines_of(const sparsek_check_args& args, char name) {
  const BsrShape shape = make_bsr_shape(*args.a);
  if (name == 'x') return lines_of_x(shape, args.n, args.order_x);
  return name == 'b' ? lines_of_b(args.op, shape, args.n, order_in_form(args.op, args.order_b))
                     : lines_of_c(args.op, shape, args.n, order_in_form(args.op, args.order_c));
}

void fill_strides(sparsek_check_args& args) {
  if (args.n < 0) fail(SPARSEK_BAD_SIZE, "args->n = %" PRId64 " is negative", args.n);
  if (args.ldb == 0) args.ldb = lines_of(args, 'b').length;
  if (args.ldc == 0) args.ldc = lines_of(args, 'c').length;
  if (args.ldx == 0) args.ldx = lines_of(args, 'x').length;
}

void require_x(const sparsek_check_args& args) {
  if (args.op != SPARSEK_SDD) return;
  const int64_t element = dtype_bytes(args.a->dtype);
  const Lines x = lines_of(args, 'x');
  require_dense(x.count, x.length, args.ldx, element, "args->ldx");
  if (x.count > 0 && x.length > 0) require_not_null(args.x, "args->x");
  require_aligned(args.x, element, "args->x");
}

void require_operands(const sparsek_check_args& args) {
  const sparsek_bsr& a = *args.a;
  require_dtype_b(args.dtype_b, a.dtype, "args->dtype_b");
  require_plain_where_mixed({static_cast<sparsek_dtype>(a.dtype), static_cast<sparsek_dtype>(args.dtype_b)}, args.op,
                            args.order_b, args.order_c, "args->dtype_b");
  require_dtype_c(args.dtype_c, args.dtype_b, "args->dtype_c");
  require_epilogue(args.bias_kind, "args->bias_kind", args.activation, "args->activation");
  const int64_t element_b = dtype_bytes(args.dtype_b), element_c = dtype_bytes(args.dtype_c);
  require_finite(args.alpha, "args->alpha");
  require_finite(args.beta, "args->beta");
  const Lines b = lines_of(args, 'b'), c = lines_of(args, 'c');
  require_dense(b.count, b.length, args.ldb, element_b, "args->ldb");
  require_dense(c.count, c.length, args.ldc, element_c, "args->ldc");
  if (b.count > 0 && b.length > 0) require_not_null(args.b, "args->b");
  if (c.count > 0 && c.length > 0) {
    require_not_null(args.c, "args->c");
    if (args.beta != 0) require_not_null(args.c0, "args->c0 (with a beta other than 0)");
    if (args.bias_kind != SPARSEK_BIAS_NONE) require_not_null(args.bias, "args->bias (with a bias_kind)");
  }
  require_x(args);
  require_aligned(args.b, element_b, "args->b");
  require_aligned(args.c, element_c, "args->c");
  require_aligned(args.c0, element_c, "args->c0");
  require_aligned(args.bias, element_c, "args->bias");
  if (!(args.unit_roundoff >= 0 && args.unit_roundoff < 1)) {
    fail(SPARSEK_BAD_ARGUMENT, "args->unit_roundoff = %g is not in [0, 1): take it from plan_info", args.unit_roundoff);
  }
  if (!(args.product_roundoff >= 0 && args.product_roundoff < 1) ||
      (args.product_roundoff != 0 && (a.dtype != SPARSEK_FP32 || args.dtype_b != SPARSEK_FP32))) {
    fail(SPARSEK_BAD_ARGUMENT,
         "args->product_roundoff = %g is not in [0, 1), or not 0 for a type other than fp32: take "
         "it from plan_info",
         args.product_roundoff);
  }
  if (args.threads < 0) fail(SPARSEK_BAD_ARGUMENT, "args->threads = %d is negative", args.threads);
}

}  // namespace

sparsek_status check(const sparsek_check_args* args, sparsek_check_report* out) noexcept {
  return guard([&] {
    checked_abi_size(out, "out");
    sparsek_check_args known = read_struct(args, "args");
    require_served(known);
    sparsek_bsr bsr = read_struct(known.a, "args->a");
    PlainMatrix plain;
    require_served(bsr);
    known.a = &bsr;
    require_host_bsr(bsr);
    if (known.dtype_b == 0) known.dtype_b = bsr.dtype;
    if (known.dtype_c == 0) known.dtype_c = known.dtype_b;
    fill_strides(known);
    require_operands(known);

    sparsek_check_report report{};
    if (known.op == SPARSEK_SDD) {
      cpu::check_blocks(known, make_bsr_index(bsr), report);
    } else {
      require_host_values(bsr, plain);
      const cpu::PlainProduct product(known);
      check_result(product.args(), product.is_turned_over(), report);
    }
    write_struct(out, report, "out");
    if (report.failures > 0) {
      fail(SPARSEK_CHECK_FAILED,
           "%" PRId64 " of %" PRId64 " elements are beyond their bound, first C[%" PRId64 ", %" PRId64
           "]; worst C[%" PRId64 ", %" PRId64 "] = %.9g, reference %.9g, bound %.3g",
           report.failures, report.elements, report.first_row, report.first_col, report.worst_row, report.worst_col,
           report.worst_c, report.worst_ref, report.worst_bound);
    }
  });
}

}  // namespace sparsek::entry
