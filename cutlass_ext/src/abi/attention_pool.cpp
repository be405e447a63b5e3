// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cinttypes>

#include "abi/abi_size.h"
#include "abi/backend.h"
#include "abi/dtype.h"
#include "abi/entry.h"
#include "abi/error.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"
#include "pattern/host.h"

namespace sparsek::entry {
namespace {

constexpr int64_t kLargestHeadSize = 4096;

int64_t require_extent(int64_t value, int64_t least, int64_t most, const char* member) {
  if (value < least || value > most) {
    fail(SPARSEK_BAD_SIZE, "args->%s = %" PRId64 " is not from %" PRId64 " to %" PRId64, member, value, least, most);
  }
  return value;
}

// Elements from the first to the last one of x, and one more.
int64_t extent_of(const RowPool& job) {
  const int64_t extents[3] = {job.batch, job.heads, job.seq};
  int64_t last = job.head_size;
  for (int i = 0; i < 3; ++i) {
    int64_t way = 0;
    if (job.stride[i] < 0 || __builtin_mul_overflow(std::max<int64_t>(0, extents[i] - 1), job.stride[i], &way) ||
        __builtin_add_overflow(last, way, &last)) {
      fail(SPARSEK_BAD_LEADING_DIMENSION, "args->stride_x[%d] = %" PRId64 " is negative, or too large", i,
           job.stride[i]);
    }
  }
  return last;
}

RowPool read_job(const sparsek_pool_args& args) {
  RowPool job = {};
  require_dtype(args.dtype, "args->dtype");
  job.dtype = static_cast<sparsek_dtype>(args.dtype);
  job.batch = require_extent(args.batch, 0, INT32_MAX, "batch");
  job.heads = require_extent(args.heads, 1, INT32_MAX, "heads");
  job.seq = require_extent(args.seq, 0, INT32_MAX, "seq");
  job.head_size = require_extent(args.head_size, 1, kLargestHeadSize, "head_size");
  job.block = require_extent(args.block, 1, INT32_MAX, "block");
  std::copy_n(args.stride_x, 3, job.stride);
  constexpr int64_t kMostRows = int64_t{1} << 40;
  if (job.batch * job.heads > kMostRows / std::max<int64_t>(job.seq, 1)) {
    fail(SPARSEK_BAD_SIZE, "args: batch * heads * seq rows do not fit in an address space");
  }
  if (job.stride[0] == 0 && job.stride[1] == 0 && job.stride[2] == 0) {
    job.stride[2] = job.head_size;
    job.stride[1] = job.seq * job.head_size;
    job.stride[0] = job.heads * job.stride[1];
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(extent_of(job), dtype_bytes(args.dtype), &bytes)) {
    fail(SPARSEK_BAD_SIZE, "args->x does not fit in an address space");
  }
  job.x = args.x;
  job.out = args.out;
  job.stream = args.stream;
  if (job.batch > 0 && job.seq > 0) {
    require_not_null(args.x, "args->x");
    require_not_null(args.out, "args->out");
    if (args.x == args.out) {
      fail(SPARSEK_BAD_ARGUMENT, "args->out is args->x: what is written must not overlap what is read");
    }
  }
  require_aligned(args.x, dtype_bytes(args.dtype), "args->x");
  require_aligned(args.out, args.dtype == SPARSEK_FP64 ? 8 : 4, "args->out");
  return job;
}

}  // namespace

sparsek_status attention_pool(sparsek_context* context, const sparsek_pool_args* given) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    const sparsek_pool_args args = read_struct(given, "args");
    const sparsek_memory memory = require_memory(args.memory, "args->memory");
    const RowPool job = read_job(args);
    if (job.batch == 0 || job.seq == 0) return;
    if (memory == SPARSEK_HOST) {
      pattern::pool_on_host(job);
    } else {
      context->backend->pool_rows(job);
    }
  });
}

}  // namespace sparsek::entry
