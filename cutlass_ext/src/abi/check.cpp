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
#include "abi/require.h"
#include "abi/served.h"

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

// Checks the matrix and makes it one that the reference can read, with arrays in `plain`.
void require_host_bsr(sparsek_bsr& bsr, PlainMatrix& plain) {
  require_bsr(bsr);
  if (bsr.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "args->a->memory is not SPARSEK_HOST: the check takes host arrays");
  }
  if (bsr.nnzb > 0) require_not_null(bsr.values, "args->a->values");
  plain.replace(bsr, make_bsr_index(bsr));
}

void require_operands(const sparsek_check_args& args) {
  const sparsek_bsr& a = *args.a;
  require_dtype_c(args.dtype_c, a.dtype, "args->dtype_c");
  require_epilogue(args.bias_kind, "args->bias_kind", args.activation, "args->activation");
  const int64_t element_b = dtype_bytes(a.dtype), element_c = dtype_bytes(args.dtype_c);
  require_finite(args.alpha, "args->alpha");
  require_finite(args.beta, "args->beta");
  if (args.n < 0) fail(SPARSEK_BAD_SIZE, "args->n = %" PRId64 " is negative", args.n);
  require_dense(a.cols, args.n, args.ldb, element_b, "args->ldb");
  require_dense(a.rows, args.n, args.ldc, element_c, "args->ldc");
  if (a.cols > 0 && args.n > 0) require_not_null(args.b, "args->b");
  if (a.rows > 0 && args.n > 0) {
    require_not_null(args.c, "args->c");
    if (args.beta != 0) require_not_null(args.c0, "args->c0 (with a beta other than 0)");
    if (args.bias_kind != SPARSEK_BIAS_NONE) require_not_null(args.bias, "args->bias (with a bias_kind)");
  }
  require_aligned(args.b, element_b, "args->b");
  require_aligned(args.c, element_c, "args->c");
  require_aligned(args.c0, element_c, "args->c0");
  require_aligned(args.bias, element_c, "args->bias");
  if (!(args.unit_roundoff >= 0 && args.unit_roundoff < 1)) {
    fail(SPARSEK_BAD_ARGUMENT, "args->unit_roundoff = %g is not in [0, 1): take it from plan_info", args.unit_roundoff);
  }
  if (!(args.product_roundoff >= 0 && args.product_roundoff < 1) ||
      (args.product_roundoff != 0 && a.dtype != SPARSEK_FP32)) {
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
    if (known.ldb == 0) known.ldb = known.n;
    if (known.ldc == 0) known.ldc = known.n;
    sparsek_bsr bsr = read_struct(known.a, "args->a");
    PlainMatrix plain;
    require_served(bsr);
    known.a = &bsr;
    require_host_bsr(bsr, plain);
    if (known.dtype_c == 0) known.dtype_c = bsr.dtype;
    require_operands(known);

    sparsek_check_report report{};
    check_result(known, report);
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
