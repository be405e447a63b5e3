// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>

#include "abi/abi_size.h"
#include "abi/dtype.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

void require_extent(int64_t extent, const char* what) {
  if (extent < 1 || extent > INT32_MAX) {
    fail(SPARSEK_BAD_SIZE, "args->%s = %" PRId64 " is not in [1, 2^31 - 1]", what, extent);
  }
}

void require_set(const void* pointer, int64_t alignment, const char* name, int32_t set) {
  const std::string what = "args->" + std::string(name) + "[" + std::to_string(set) + "]";
  require_not_null(pointer, what.c_str());
  require_aligned(pointer, alignment, what.c_str());
}

void require_args(const sparsek_dense_time_args& args) {
  require_extent(args.m, "m");
  require_extent(args.n, "n");
  require_extent(args.k, "k");
  require_dtype(args.dtype, "args->dtype");
  const int64_t element = dtype_bytes(args.dtype);
  if (args.dtype == SPARSEK_FP32 || args.dtype == SPARSEK_FP64) {
    fail(SPARSEK_UNSUPPORTED_DTYPE, "args->dtype: dense products are timed in SPARSEK_BF16 and SPARSEK_FP16");
  }
  if (args.set_count < 1) fail(SPARSEK_BAD_SIZE, "args->set_count = %d is below 1", args.set_count);
  if (args.warmup < 0) fail(SPARSEK_BAD_SIZE, "args->warmup = %d is negative", args.warmup);
  if (args.repeats < 1) fail(SPARSEK_BAD_SIZE, "args->repeats = %d is below 1", args.repeats);
  require_not_null(args.a, "args->a");
  require_not_null(args.b, "args->b");
  require_not_null(args.c, "args->c");
  for (int32_t set = 0; set < args.set_count; ++set) {
    require_set(args.a[set], element, "a", set);
    require_set(args.b[set], element, "b", set);
    require_set(args.c[set], element, "c", set);
  }
}

}  // namespace

sparsek_status dense_time(sparsek_context* context, const sparsek_dense_time_args* args, double* seconds) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    const sparsek_dense_time_args known = read_struct(args, "args");
    require_not_null(seconds, "seconds");
    require_args(known);
    context->backend->dense_time(known, seconds);
  });
}

}  // namespace sparsek::entry
