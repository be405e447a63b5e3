// SPDX-License-Identifier: Apache-2.0
#include "abi/served.h"

#include <cstddef>
#include <string>

#include "abi/error.h"

namespace sparsek {
namespace {

void require_null(const void* pointer, const char* member) {
  if (pointer != nullptr) fail(SPARSEK_BAD_ARGUMENT, "%s is not served yet: set it to null", member);
}

// A value of an enumeration, and where it is not served yet, what to do instead.
struct Enumerator {
  const char* name;
  const char* instead;  // null: it is served
};

// Enumerator i has the value i.
template <size_t Count>
void require_served_one(int32_t value, const char* member, const Enumerator (&all)[Count]) {
  if (value < 0 || value >= static_cast<int32_t>(Count)) {
    std::string names;
    for (size_t i = 0; i < Count; ++i) {
      names += (i == 0 ? "" : ", ") + std::string(all[i].name) + " (" + std::to_string(i) + ")";
    }
    fail(SPARSEK_BAD_ARGUMENT, "%s = %d is none of %s", member, value, names.c_str());
  }
  const Enumerator& given = all[value];
  if (given.instead != nullptr) {
    fail(SPARSEK_BAD_ARGUMENT, "%s = %s (%d) is not served yet: %s", member, given.name, value, given.instead);
  }
}

constexpr Enumerator kOps[] = {{"SPARSEK_DSD", nullptr},
                               {"SPARSEK_DSD_T", "make a matrix of the transpose of A, and use SPARSEK_DSD (0)"},
                               {"SPARSEK_SDD", "use SPARSEK_DSD (0)"}};
constexpr Enumerator kOrdersB[] = {
    {"SPARSEK_ROW_MAJOR", nullptr},
    {"SPARSEK_COLUMN_MAJOR", "copy B to row-major order, and use SPARSEK_ROW_MAJOR (0)"}};
constexpr Enumerator kOrdersC[] = {
    {"SPARSEK_ROW_MAJOR", nullptr},
    {"SPARSEK_COLUMN_MAJOR", "use SPARSEK_ROW_MAJOR (0), and copy C to the other order"}};
constexpr Enumerator kComputes[] = {{"SPARSEK_COMPUTE_EXACT", nullptr}, {"SPARSEK_COMPUTE_TF32", nullptr}};

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
  require_served_one(options.op, "options->op", kOps);
  require_served_one(options.order_b, "options->order_b", kOrdersB);
  require_served_one(options.order_c, "options->order_c", kOrdersC);
  require_served_one(options.compute, "options->compute", kComputes);
  require_flags(options.flags, SPARSEK_OWN_KERNELS | SPARSEK_NO_USER_CACHE | SPARSEK_BATCH_INVARIANT, "options->flags",
                "SPARSEK_OWN_KERNELS (1), SPARSEK_NO_USER_CACHE (2) and SPARSEK_BATCH_INVARIANT (4)");
}

void require_served(const sparsek_multiply_args& args) {
  require_flags(args.flags, SPARSEK_TRUSTED, "args->flags", "SPARSEK_TRUSTED (1)");
}

}  // namespace sparsek
