// SPDX-License-Identifier: Apache-2.0
// Work on values: checks arguments, and has the host or the back-end do it.
#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"
#include "pattern/given.h"
#include "pattern/host.h"

namespace sparsek::entry {
namespace {

using pattern::ValuesJob;
using pattern::Work;

// Members that only some functions read.
enum Reads : unsigned {
  kAValues = 1,
  kB = 2,
  kDense = 4,
  kNorm = 8,
  kTransposed = 16,
  kFactors = 32,
  kAlpha = 64,
  kBeta = 128
};

void require_unread(const sparsek_values_args& args, unsigned reads) {
  const auto refuse = [&](unsigned read, bool is_set, const char* member) {
    if ((reads & read) == 0 && is_set) fail(SPARSEK_BAD_ARGUMENT, "args->%s is not 0, and is not read here", member);
  };
  refuse(kB, args.b != nullptr, "b");
  refuse(kDense, args.ld != 0, "ld");
  refuse(kDense, args.order != 0, "order");
  refuse(kNorm, args.norm != 0, "norm");
  refuse(kTransposed, args.transposed != 0, "transposed");
  refuse(kFactors, args.row_factors != nullptr, "row_factors");
  refuse(kFactors, args.column_factors != nullptr, "column_factors");
  refuse(kAlpha, args.alpha != 0, "alpha");
  refuse(kBeta, args.beta != 0, "beta");
}

sparsek_status work(sparsek_context* context, const sparsek_values_args* given, Work what, unsigned reads) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    const sparsek_values_args args = read_struct(given, "args");
    require_unread(args, reads);
    const sparsek_bsr a = read_struct(args.a, "args->a");
    ValuesJob job = {};
    job.what = what;
    job.a = pattern::read_given(a);
    if (job.a.unsorted) fail(SPARSEK_BAD_ARGUMENT, "args->a->flags has SPARSEK_BSR_SORT");
    job.dtype = static_cast<sparsek_dtype>(a.dtype);
    job.stream = a.stream;
    const BsrShape& shape = job.a.shape;
    const int64_t bytes = dtype_bytes(a.dtype), sum_bytes = a.dtype == SPARSEK_FP64 ? 8 : 4;
    const bool is_dense = (reads & kDense) != 0;
    if (is_dense) {
      job.order = require_order(args.order, "args->order");
      const bool by_rows = job.order == SPARSEK_ROW_MAJOR;
      const int64_t lines = by_rows ? shape.rows : shape.cols, length = by_rows ? shape.cols : shape.rows;
      job.ld = args.ld != 0 ? args.ld : length;
      require_dense(lines, length, job.ld, bytes, "args->ld");
    }
    const bool is_empty = what == Work::kToDense ? shape.rows == 0 || shape.cols == 0
                          : what == Work::kSum   ? shape.rows == 0
                                                 : shape.nnzb == 0;
    if (!is_empty) require_not_null(args.out, "args->out");
    require_aligned(args.out, what == Work::kNorms || what == Work::kSum ? sum_bytes : bytes, "args->out");
    if ((reads & kAValues) != 0 && shape.nnzb > 0) require_not_null(a.values, "args->a->values");
    if ((reads & kB) != 0 && shape.nnzb > 0) require_not_null(args.b, "args->b");
    require_aligned(args.b, bytes, "args->b");
    require_aligned(args.row_factors, sum_bytes, "args->row_factors");
    require_aligned(args.column_factors, sum_bytes, "args->column_factors");
    if (args.norm < SPARSEK_NORM_MAX || args.norm > SPARSEK_NORM_L2) {
      fail(SPARSEK_BAD_ARGUMENT,
           "args->norm = %d is none of SPARSEK_NORM_MAX (0), SPARSEK_NORM_L1 (1), SPARSEK_NORM_L2 (2)", args.norm);
    }
    if (args.transposed != 0 && args.transposed != 1) {
      fail(SPARSEK_BAD_ARGUMENT, "args->transposed = %d is neither 0 nor 1", args.transposed);
    }
    job.out = args.out;
    job.b = args.b;
    job.norm = static_cast<sparsek_norm>(args.norm);
    job.transposed = args.transposed == 1;
    job.row_factors = args.row_factors;
    job.column_factors = args.column_factors;
    job.alpha = args.alpha;
    job.beta = args.beta;
    if (a.memory == SPARSEK_HOST) {
      pattern::work_on_host(job);
    } else {
      context->backend->work_on_values(job);
    }
  });
}

}  // namespace

sparsek_status to_dense(sparsek_context* context, const sparsek_values_args* args) noexcept {
  return work(context, args, Work::kToDense, kAValues | kDense);
}
sparsek_status gather_values(sparsek_context* context, const sparsek_values_args* args) noexcept {
  return work(context, args, Work::kGather, kB | kDense);
}
sparsek_status block_norms(sparsek_context* context, const sparsek_values_args* args) noexcept {
  return work(context, args, Work::kNorms, kAValues | kNorm);
}
sparsek_status sum(sparsek_context* context, const sparsek_values_args* args) noexcept {
  return work(context, args, Work::kSum, kAValues | kTransposed);
}
sparsek_status scale(sparsek_context* context, const sparsek_values_args* args) noexcept {
  return work(context, args, Work::kScale, kAValues | kFactors);
}
sparsek_status multiply_values(sparsek_context* context, const sparsek_values_args* args) noexcept {
  return work(context, args, Work::kMultiply, kAValues | kB | kAlpha);
}
sparsek_status add_values(sparsek_context* context, const sparsek_values_args* args) noexcept {
  return work(context, args, Work::kAdd, kAValues | kB | kAlpha | kBeta);
}

}  // namespace sparsek::entry
