// SPDX-License-Identifier: Apache-2.0
// Making of patterns: checks arguments, and has the host or the back-end do the work.
#include <cinttypes>

#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/pattern_args.h"
#include "abi/require.h"
#include "pattern/given.h"
#include "pattern/host.h"

namespace sparsek::entry {
namespace {

using pattern::Make;
using pattern::MakeJob;

void run(sparsek_context& context, int32_t memory, const MakeJob& job) {
  if (memory == SPARSEK_HOST) {
    pattern::make_on_host(job);
  } else {
    context.backend->make_index(job);
  }
}

template <class Read>
sparsek_status make(sparsek_context* context, const sparsek_pattern_args* given, unsigned reads, Read read) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    const sparsek_pattern_args args = read_struct(given, "args");
    require_memory(args.memory, "args->memory");
    require_index_type(args.index_type, "args->index_type");
    require_unread(args, reads);
    MakeJob job = {};
    read(args, job);
    run(*context, args.memory, job);
  });
}

}  // namespace

sparsek_status pattern_from_mask(sparsek_context* context, const sparsek_pattern_args* given) noexcept {
  return make(context, given, kSource | kThreshold | kBits | kLd, [](const sparsek_pattern_args& args, MakeJob& job) {
    read_made(args, kNoValues, job);
    const BsrShape& shape = job.to.shape;
    require_source(args, int64_t{shape.block_rows} * shape.block_cols);
    if ((args.flags & ~SPARSEK_PATTERN_BITS) != 0) {
      fail(SPARSEK_BAD_ARGUMENT, "args->flags = %d has bits other than SPARSEK_PATTERN_BITS (1)", args.flags);
    }
    job.source = args.source;
    job.bits = (args.flags & SPARSEK_PATTERN_BITS) != 0;
    if (args.source_dtype != 0) {
      if (job.bits) fail(SPARSEK_BAD_ARGUMENT, "args->source_dtype is not 0 with SPARSEK_PATTERN_BITS");
      job.what = Make::kScores;
      require_threshold(args.threshold);
      read_scores(args, job);
      job.threshold = args.threshold;
      return;
    }
    if (args.threshold != 0) fail(SPARSEK_BAD_ARGUMENT, "args->threshold is of scores, and source_dtype is 0");
    job.what = Make::kMask;
    const int64_t bits = (int64_t{shape.block_cols} + 7) / 8 * 8;
    job.ld = read_ld(args, shape.block_rows, job.bits && args.ld == 0 ? bits : shape.block_cols, 1);
    if (job.bits && job.ld % 8 != 0) {
      fail(SPARSEK_BAD_LEADING_DIMENSION, "args->ld = %" PRId64 " is no multiple of 8 bits", job.ld);
    }
  });
}

sparsek_status pattern_from_topk(sparsek_context* context, const sparsek_pattern_args* given) noexcept {
  return make(
      context, given, kSource | kIndexSource | kCount | kLd, [](const sparsek_pattern_args& args, MakeJob& job) {
        read_made(args, kNoValues, job);
        const BsrShape& shape = job.to.shape;
        if (args.count < 0 || args.count > INT32_MAX) fail(SPARSEK_BAD_SIZE, "args->count = %" PRId64, args.count);
        if ((args.source_dtype != 0) == (args.source_index_type != 0)) {
          fail(SPARSEK_BAD_ARGUMENT, "one of args->source_dtype and args->source_index_type says what source is");
        }
        job.source = args.source;
        job.count = args.count;
        if (args.source_dtype != 0) {
          job.what = Make::kTopScores;
          require_source(args, int64_t{shape.block_rows} * shape.block_cols);
          read_scores(args, job);
          return;
        }
        job.what = Make::kTopColumns;
        require_index_type(args.source_index_type, "args->source_index_type");
        require_source(args, shape.block_rows * args.count);
        job.source_index = index_array(args.source, args.source_index_type, "args->source");
        job.ld = read_ld(args, shape.block_rows, args.count, index_type_bytes(args.source_index_type));
      });
}

sparsek_status pattern_from_dense(sparsek_context* context, const sparsek_pattern_args* given) noexcept {
  return make(
      context, given, kSource | kValues | kNorms | kThreshold | kLd,
      [](const sparsek_pattern_args& args, MakeJob& job) {
        const bool has_values = args.values != nullptr;
        const int32_t dtype = has_values ? args.dtype : args.source_dtype;
        require_dtype(dtype, has_values ? "args->dtype" : "args->source_dtype");
        if ((args.dtype != 0 && args.dtype != dtype) || (args.source_dtype != 0 && args.source_dtype != dtype)) {
          fail(SPARSEK_BAD_ARGUMENT, "args->dtype = %d and args->source_dtype = %d are not the same", args.dtype,
               args.source_dtype);
        }
        read_made(args, dtype, job);
        const BsrShape& shape = job.to.shape;
        job.what = Make::kDense;
        job.order = require_order(args.order, "args->order");
        require_norm(args.norm);
        require_threshold(args.threshold);
        require_source(args, shape.rows > 0 ? shape.cols : 0);
        require_aligned(args.source, dtype_bytes(dtype), "args->source");
        if (int64_t{shape.block_rows} * shape.block_cols > 0) require_not_null(args.norms, "args->norms");
        require_aligned(args.norms, dtype == SPARSEK_FP64 ? 8 : 4, "args->norms");
        const bool by_rows = job.order == SPARSEK_ROW_MAJOR;
        job.ld =
            read_ld(args, by_rows ? shape.rows : shape.cols, by_rows ? shape.cols : shape.rows, dtype_bytes(dtype));
        job.source = args.source;
        job.norm = static_cast<sparsek_norm>(args.norm);
        job.threshold = args.threshold;
        job.norms = args.norms;
      });
}

sparsek_status pattern_from_csr(sparsek_context* context, const sparsek_bsr* csr,
                                const sparsek_pattern_args* given) noexcept {
  return make(context, given, kValues | kIndexSource, [&](const sparsek_pattern_args& args, MakeJob& job) {
    job.what = Make::kCsr;
    sparsek_bsr from = read_struct(csr, "csr");
    const bool is_coo = from.row_ptr == nullptr;
    if (is_coo) {
      if (from.nnzb > 0) require_not_null(args.source, "csr->row_ptr and args->source");
      if ((from.flags & SPARSEK_BSR_BOUND) != 0) {
        fail(SPARSEK_BAD_ARGUMENT, "csr->flags has SPARSEK_BSR_BOUND, and row_ptr, which tells the elements, is null");
      }
      static constexpr int64_t kNone = 0;
      from.row_ptr = &kNone;  // for the checks alone
    } else if (args.source != nullptr) {
      fail(SPARSEK_BAD_ARGUMENT, "args->source is not null: rows are those of csr->row_ptr");
    }
    if (args.source_index_type != 0)
      fail(SPARSEK_BAD_ARGUMENT, "args->source_index_type is csr->index_type: set it to 0");
    pattern::Given read = read_from(&from, args, "csr");
    if (is_coo) {
      read.row_ptr = {};
      job.source_index = index_array(args.source, from.index_type, "args->source");
    }
    if (read.unsorted) fail(SPARSEK_BAD_ARGUMENT, "csr->flags has SPARSEK_BSR_SORT");
    const int32_t dtype = args.values != nullptr ? args.dtype : from.dtype;
    read_made(args, dtype, job);
    const BsrShape &shape = job.to.shape, &elements = read.shape;
    if (elements.block_m != 1 || elements.block_k != 1 || elements.rows != shape.rows || elements.cols != shape.cols ||
        from.dtype != dtype) {
      fail(SPARSEK_BAD_SIZE, "csr must have blocks of 1 x 1, and the sizes and dtype of args");
    }
    if (from.block_idx != nullptr) fail(SPARSEK_BAD_ARGUMENT, "csr->block_idx is not null");
    if (args.values != nullptr && elements.nnzb > 0) require_not_null(from.values, "csr->values");
    job.from.push_back(read);
  });
}

sparsek_status pattern_from_blocks(sparsek_context* context, const sparsek_bsr* a,
                                   const sparsek_pattern_args* given) noexcept {
  return make(context, given, kValues | kBlockIdx | kSource | kThreshold | kCount,
              [&](const sparsek_pattern_args& args, MakeJob& job) {
                const pattern::Given from = read_from(a, args, "a");
                read_made(args, args.values != nullptr ? args.dtype : a->dtype, job);
                const BsrShape &shape = job.to.shape, &of = from.shape;
                if (shape.rows != of.rows || shape.cols != of.cols || shape.block_m != of.block_m ||
                    shape.block_k != of.block_k || job.dtype != a->dtype) {
                  fail(SPARSEK_BAD_SIZE, "args must have the sizes, block and dtype of a");
                }
                if (from.unsorted) fail(SPARSEK_BAD_ARGUMENT, "a->flags has SPARSEK_BSR_SORT");
                if (of.nnzb - 1 > pattern::largest_index(args.index_type)) {
                  fail(SPARSEK_BAD_SIZE,
                       "a->nnzb = %" PRId64 ": args->index_type cannot name all blocks of a in block_idx", of.nnzb);
                }
                if (shape.nnzb > 0) require_not_null(args.block_idx, "args->block_idx");
                if (args.values != nullptr && of.nnzb > 0) require_not_null(a->values, "a->values");
                require_dtype(args.source_dtype, "args->source_dtype");
                require_source(args, of.nnzb);
                require_aligned(args.source, dtype_bytes(args.source_dtype), "args->source");
                if (args.count < 0 || args.count > INT32_MAX) {
                  fail(SPARSEK_BAD_SIZE, "args->count = %" PRId64, args.count);
                }
                if (args.count > 0 && args.threshold != 0) {
                  fail(SPARSEK_BAD_ARGUMENT, "args->count and args->threshold are both given");
                }
                require_threshold(args.threshold);
                job.what = args.count > 0 ? Make::kTopBlocks : Make::kBlocks;
                job.dtype = static_cast<sparsek_dtype>(args.source_dtype);
                job.source = args.source;
                job.count = args.count;
                job.threshold = args.threshold;
                job.from.push_back(from);
                job.values_dtype = static_cast<sparsek_dtype>(a->dtype);
              });
}

sparsek_status pattern_from_counts(sparsek_context* context, const sparsek_pattern_args* given) noexcept {
  return make(context, given, kIndexSource | kCount, [](const sparsek_pattern_args& args, MakeJob& job) {
    read_made(args, kNoValues, job);
    job.what = Make::kCounts;
    if (args.count < 1 || args.count > INT32_MAX) fail(SPARSEK_BAD_SIZE, "args->count = %" PRId64, args.count);
    const BsrShape& shape = job.to.shape;
    if (shape.cols % (args.count * shape.block_k) != 0) {
      fail(SPARSEK_BAD_SIZE, "cols = %" PRId64 " is no multiple of count * block_k = %" PRId64 " * %d", shape.cols,
           args.count, shape.block_k);
    }
    require_index_type(args.source_index_type, "args->source_index_type");
    require_not_null(args.source, "args->source");
    require_not_null(args.bins, "args->bins");
    job.count = args.count;
    job.source_index = index_array(args.source, args.source_index_type, "args->source");
    job.bins = index_array(args.bins, args.index_type, "args->bins");
  });
}

sparsek_status pattern_block_diagonal(sparsek_context* context, const sparsek_bsr* const* matrices, int32_t count,
                                      const sparsek_pattern_args* given) noexcept {
  return make(context, given, kBlockIdx, [&](const sparsek_pattern_args& args, MakeJob& job) {
    read_made(args, kNoValues, job);
    job.what = Make::kBlockDiagonal;
    if (count < 0) fail(SPARSEK_BAD_SIZE, "count = %d is negative", count);
    if (count > 0) require_not_null(matrices, "matrices");
    int64_t rows = 0, cols = 0, blocks = 0;
    const BsrShape& shape = job.to.shape;
    for (int32_t i = 0; i < count; ++i) {
      job.from.push_back(read_from(matrices[i], args, "a matrix"));
      const BsrShape& member = job.from.back().shape;
      if (member.block_m != shape.block_m || member.block_k != shape.block_k) {
        fail(SPARSEK_BAD_SIZE, "matrix %d has blocks of %d x %d, and args of %d x %d", i, member.block_m,
             member.block_k, shape.block_m, shape.block_k);
      }
      if (rows % shape.block_m != 0 || cols % shape.block_k != 0) {
        fail(SPARSEK_BAD_SIZE, "matrix %d is no multiple of the block: only the last may be", i - 1);
      }
      if (job.from.back().unsorted) fail(SPARSEK_BAD_ARGUMENT, "matrix %d has SPARSEK_BSR_SORT", i);
      rows += member.rows;
      cols += member.cols;
      blocks += member.nnzb;
    }
    if (rows != shape.rows || cols != shape.cols || blocks > shape.nnzb) {
      fail(SPARSEK_BAD_SIZE, "the matrices are %" PRId64 " x %" PRId64 " with at most %" PRId64 " blocks together",
           rows, cols, blocks);
    }
  });
}

sparsek_status transpose_index(sparsek_context* context, const sparsek_bsr* a,
                               const sparsek_pattern_args* given) noexcept {
  return make(context, given, kBlockIdx, [&](const sparsek_pattern_args& args, MakeJob& job) {
    read_made(args, kNoValues, job);
    job.what = Make::kTransposed;
    const pattern::Given from = read_from(a, args, "a");
    const BsrShape &shape = job.to.shape, &of = from.shape;
    if (shape.rows != of.cols || shape.cols != of.rows || shape.block_m != of.block_k || shape.block_k != of.block_m ||
        shape.nnzb < of.nnzb) {
      fail(SPARSEK_BAD_SIZE, "args must have a's sizes transposed, and room for %" PRId64 " blocks", of.nnzb);
    }
    if (of.nnzb > 0) require_not_null(args.block_idx, "args->block_idx");
    job.from.push_back(from);
  });
}

sparsek_status to_csr(sparsek_context* context, const sparsek_bsr* a, const sparsek_pattern_args* given) noexcept {
  return make(context, given, kValues | kRowIdx, [&](const sparsek_pattern_args& args, MakeJob& job) {
    job.what = Make::kToCsr;
    const pattern::Given from = read_from(a, args, "a");
    const int32_t dtype = args.values != nullptr ? args.dtype : a->dtype;
    read_made(args, dtype, job);
    const BsrShape &shape = job.to.shape, &of = from.shape;
    if (shape.block_m != 1 || shape.block_k != 1 || shape.rows != of.rows || shape.cols != of.cols ||
        a->dtype != dtype) {
      fail(SPARSEK_BAD_SIZE, "args must have blocks of 1 x 1, and the sizes and dtype of a");
    }
    if (from.unsorted) fail(SPARSEK_BAD_ARGUMENT, "a->flags has SPARSEK_BSR_SORT");
    if (args.values != nullptr && of.nnzb > 0) require_not_null(a->values, "a->values");
    job.from.push_back(from);
  });
}

sparsek_status pattern_check(sparsek_context* context, const sparsek_bsr* a, int64_t* fault) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    require_not_null(fault, "fault");
    require_aligned(fault, sizeof(*fault), "fault");
    const sparsek_bsr known = read_struct(a, "a");
    const pattern::Given given = pattern::read_given(known);
    if (known.memory == SPARSEK_HOST) {
      *fault = pattern::reported_fault(pattern::find_fault(given));
    } else {
      context->backend->check_index(given, fault, known.stream);
    }
  });
}

}  // namespace sparsek::entry
