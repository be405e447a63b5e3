// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>

#include "abi/abi_size.h"
#include "abi/backend.h"
#include "abi/dtype.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/require.h"
#include "abi/served.h"

namespace sparsek::entry {
namespace {

void require_host_bsr(const sparsek_bsr& bsr) {
  require_bsr(bsr);
  if (bsr.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "args->a->memory is not SPARSEK_HOST: the check takes host arrays");
  }
  if (bsr.nnzb > 0) require_not_null(bsr.values, "args->a->values");
  make_bsr_index(bsr);  // only for its checks: the reference reads the caller's arrays
}

void require_operands(const sparsek_check_args& args) {
  const sparsek_bsr& a = *args.a;
  require_dtype(args.dtype_c, "args->dtype_c");
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
  if (args.threads < 0) fail(SPARSEK_BAD_ARGUMENT, "args->threads = %d is negative", args.threads);
}

}  // namespace

sparsek_status check(const sparsek_check_args* args, sparsek_check_report* out) noexcept {
  return guard([&] {
    checked_abi_size(out, "out");
    sparsek_check_args known = read_struct(args, "args");
    if (known.ldb == 0) known.ldb = known.n;
    if (known.ldc == 0) known.ldc = known.n;
    const sparsek_bsr bsr = read_struct(known.a, "args->a");
    require_served(bsr);
    known.a = &bsr;
    require_host_bsr(bsr);
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
