// SPDX-License-Identifier: Apache-2.0
#include "abi/served.h"

#include <cinttypes>

#include "abi/error.h"

namespace sparsek {
namespace {

// A member whose only served value is 0.
void require_unused(int64_t value, const char* member) {
  if (value != 0) fail(SPARSEK_BAD_ARGUMENT, "%s = %" PRId64 " is not served yet: set it to 0", member, value);
}

void require_null(const void* pointer, const char* member) {
  if (pointer != nullptr) fail(SPARSEK_BAD_ARGUMENT, "%s is not served yet: set it to null", member);
}

void require_enumerator(int32_t value, int32_t last, const char* member, const char* names) {
  if (value < 0 || value > last) fail(SPARSEK_BAD_ARGUMENT, "%s = %d is none of %s", member, value, names);
}

// An enumerator of which only the first is served.
void require_first(int32_t value, int32_t last, const char* member, const char* names, const char* first) {
  require_enumerator(value, last, member, names);
  if (value != 0) fail(SPARSEK_BAD_ARGUMENT, "%s = %d is not served yet: use %s (0)", member, value, first);
}

void require_flags(int32_t value, int32_t known, const char* member, const char* names) {
  if ((value & ~known) != 0) fail(SPARSEK_BAD_ARGUMENT, "%s = %d has bits other than %s", member, value, names);
}

}  // namespace

void require_served(const sparsek_bsr& bsr) {
  require_flags(bsr.flags, SPARSEK_BSR_SORT | SPARSEK_BSR_ASYNC | SPARSEK_BSR_BOUND, "bsr->flags",
                "SPARSEK_BSR_SORT (1), SPARSEK_BSR_ASYNC (2) and SPARSEK_BSR_BOUND (4)");
  if ((bsr.flags & SPARSEK_BSR_BOUND) != 0) require_null(bsr.block_idx, "bsr->block_idx, with SPARSEK_BSR_BOUND,");
}

void require_served(const sparsek_plan_options& options) {
  require_first(options.op, SPARSEK_SDD, "options->op", "SPARSEK_DSD (0), SPARSEK_DSD_T (1), SPARSEK_SDD (2)",
                "SPARSEK_DSD");
  const char* const orders = "SPARSEK_ROW_MAJOR (0), SPARSEK_COLUMN_MAJOR (1)";
  require_first(options.order_b, SPARSEK_COLUMN_MAJOR, "options->order_b", orders, "SPARSEK_ROW_MAJOR");
  require_first(options.order_c, SPARSEK_COLUMN_MAJOR, "options->order_c", orders, "SPARSEK_ROW_MAJOR");
  require_first(options.compute, SPARSEK_COMPUTE_TF32, "options->compute",
                "SPARSEK_COMPUTE_EXACT (0), SPARSEK_COMPUTE_TF32 (1)", "SPARSEK_COMPUTE_EXACT");
  require_flags(options.flags, SPARSEK_OWN_KERNELS | SPARSEK_NO_USER_CACHE | SPARSEK_BATCH_INVARIANT, "options->flags",
                "SPARSEK_OWN_KERNELS (1), SPARSEK_NO_USER_CACHE (2) and SPARSEK_BATCH_INVARIANT (4)");
  require_unused(options.values_static, "options->values_static");
}

void require_served(const sparsek_multiply_args& args) {
  require_flags(args.flags, SPARSEK_TRUSTED, "args->flags", "SPARSEK_TRUSTED (1)");
}

}  // namespace sparsek
