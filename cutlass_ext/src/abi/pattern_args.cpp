// SPDX-License-Identifier: Apache-2.0
#include "abi/pattern_args.h"

#include <cinttypes>
#include <cmath>

#include "abi/abi_size.h"
#include "abi/require.h"
#include "pattern/given.h"

namespace sparsek {

using pattern::IndexArray;
using pattern::MakeJob;

void require_index_type(int32_t type, const char* what) {
  if (type == SPARSEK_INT32 || type == SPARSEK_INT64 || type == SPARSEK_INT16) return;
  fail(SPARSEK_BAD_ARGUMENT, "%s = %d is none of SPARSEK_INT32 (1), SPARSEK_INT64 (2), SPARSEK_INT16 (3)", what, type);
}

IndexArray index_array(const void* data, int32_t type, const char* what) {
  require_aligned(data, index_type_bytes(type), what);
  return {data, type};
}

void read_made(const sparsek_pattern_args& args, int32_t values_dtype, MakeJob& job) {
  sparsek_bsr sizes = {};
  sizes.rows = args.rows;
  sizes.cols = args.cols;
  sizes.block_m = args.block_m;
  sizes.block_k = args.block_k;
  sizes.nnzb = args.capacity;
  sizes.dtype = values_dtype;
  sizes.index_type = args.index_type;
  sizes.memory = args.memory;
  job.to.shape = make_bsr_shape(sizes);
  const int64_t largest = pattern::largest_index(args.index_type);
  if (args.capacity > largest || job.to.shape.block_rows > largest || job.to.shape.block_cols > largest) {
    fail(SPARSEK_BAD_SIZE, "a capacity of %" PRId64 " and %d x %d blocks are beyond args->index_type = %d",
         args.capacity, job.to.shape.block_rows, job.to.shape.block_cols, args.index_type);
  }
  require_not_null(args.row_ptr, "args->row_ptr");
  if (args.capacity > 0) require_not_null(args.col_idx, "args->col_idx");
  require_not_null(args.fault, "args->fault");
  require_aligned(args.fault, sizeof(int64_t), "args->fault");
  require_aligned(args.blocks, sizeof(int64_t), "args->blocks");
  require_aligned(args.values, dtype_bytes(values_dtype), "args->values");
  job.to.row_ptr = index_array(args.row_ptr, args.index_type, "args->row_ptr");
  job.to.col_idx = index_array(args.col_idx, args.index_type, "args->col_idx");
  job.to.block_idx = index_array(args.block_idx, args.index_type, "args->block_idx");
  job.to.row_idx = index_array(args.row_idx, args.index_type, "args->row_idx");
  job.to.values = args.values;
  job.to.blocks = args.blocks;
  job.to.fault = args.fault;
  job.stream = args.stream;
  job.dtype = static_cast<sparsek_dtype>(values_dtype);
}

void require_unread(const sparsek_pattern_args& args, unsigned reads) {
  const auto refuse = [&](unsigned read, bool is_set, const char* member) {
    if ((reads & read) == 0 && is_set) fail(SPARSEK_BAD_ARGUMENT, "args->%s is not 0, and is not read here", member);
  };
  refuse(kValues, args.values != nullptr, "values");
  refuse(kValues, args.dtype != 0, "dtype");
  refuse(kBlockIdx, args.block_idx != nullptr, "block_idx");
  refuse(kRowIdx, args.row_idx != nullptr, "row_idx");
  refuse(kSource | kIndexSource, args.source != nullptr, "source");
  refuse(kSource, args.source_dtype != 0, "source_dtype");
  refuse(kIndexSource, args.source_index_type != 0, "source_index_type");
  refuse(kNorms, args.norms != nullptr, "norms");
  refuse(kNorms, args.norm != 0, "norm");
  refuse(kNorms, args.order != 0, "order");
  refuse(kThreshold, args.threshold != 0, "threshold");
  refuse(kCount, args.count != 0, "count");
  refuse(kBits, args.flags != 0, "flags");
  refuse(kLd, args.ld != 0, "ld");
  if (args.bins != nullptr && reads != (kIndexSource | kCount)) {
    fail(SPARSEK_BAD_ARGUMENT, "args->bins is not 0, and is not read here");
  }
}

int64_t read_ld(const sparsek_pattern_args& args, int64_t lines, int64_t length, int64_t bytes) {
  const int64_t ld = args.ld != 0 ? args.ld : length;
  require_dense(lines, length, ld, bytes, "args->ld");
  return ld;
}

void require_norm(int32_t norm) {
  if (norm >= SPARSEK_NORM_MAX && norm <= SPARSEK_NORM_L2) return;
  fail(SPARSEK_BAD_ARGUMENT,
       "args->norm = %d is none of SPARSEK_NORM_MAX (0), SPARSEK_NORM_L1 (1), SPARSEK_NORM_L2 (2)", norm);
}

void require_threshold(double threshold) {
  if (std::isnan(threshold)) fail(SPARSEK_BAD_ARGUMENT, "args->threshold is NaN");
}

void read_scores(const sparsek_pattern_args& args, MakeJob& job) {
  const BsrShape& shape = job.to.shape;
  require_dtype(args.source_dtype, "args->source_dtype");
  require_aligned(args.source, dtype_bytes(args.source_dtype), "args->source");
  job.dtype = static_cast<sparsek_dtype>(args.source_dtype);
  job.ld = read_ld(args, shape.block_rows, shape.block_cols, dtype_bytes(args.source_dtype));
}

void require_source(const sparsek_pattern_args& args, int64_t elements) {
  if (elements > 0) require_not_null(args.source, "args->source");
}

pattern::Given read_from(const sparsek_bsr* bsr, const sparsek_pattern_args& args, const char* what) {
  const sparsek_bsr given = read_struct(bsr, what);
  if (given.memory != args.memory || (given.memory == SPARSEK_DEVICE && given.stream != args.stream)) {
    fail(SPARSEK_BAD_ARGUMENT, "%s has another memory or stream than args", what);
  }
  return pattern::read_given(given);
}

}  // namespace sparsek
