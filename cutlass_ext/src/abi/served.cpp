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
                               {"SPARSEK_DSD_T", nullptr},
                               {"SPARSEK_SDD", nullptr},
                               {"SPARSEK_DDS", nullptr},
                               {"SPARSEK_DDS_T", nullptr}};
constexpr Enumerator kOrders[] = {{"SPARSEK_ROW_MAJOR", nullptr}, {"SPARSEK_COLUMN_MAJOR", nullptr}};
constexpr Enumerator kComputes[] = {{"SPARSEK_COMPUTE_EXACT", nullptr}, {"SPARSEK_COMPUTE_TF32", nullptr}};

// The members of a product that two structs have.
struct ProductMembers {
  int32_t op, order_b, order_c, order_x;
  int64_t ldc, ldx;
  int32_t bias;
  const char* bias_name;
};

// Enumerations, and what goes with SPARSEK_SDD alone or not with it.
void require_product(const char* what, const ProductMembers& given) {
  const auto name = [&](const char* member) { return std::string(what) + "->" + member; };
  require_served_one(given.op, name("op").c_str(), kOps);
  require_served_one(given.order_b, name("order_b").c_str(), kOrders);
  require_served_one(given.order_c, name("order_c").c_str(), kOrders);
  require_served_one(given.order_x, name("order_x").c_str(), kOrders);
  const auto require_zero = [&](int64_t value, const char* member, const char* why) {
    if (value == 0) return;
    fail(SPARSEK_BAD_ARGUMENT, "%s = %lld: %s, set it to 0", name(member).c_str(), static_cast<long long>(value), why);
  };
  if (given.op == SPARSEK_SDD) {
    require_zero(given.bias, given.bias_name, "SPARSEK_SDD has none");
    require_zero(given.ldc, "ldc", "the blocks of SPARSEK_SDD follow each other");
    require_zero(given.order_c, "order_c", "the blocks of SPARSEK_SDD are row-major");
  } else {
    require_zero(given.ldx, "ldx", "X is SPARSEK_SDD's");
    require_zero(given.order_x, "order_x", "X is SPARSEK_SDD's");
  }
}

void require_flags(int32_t value, int32_t known, const char* member, const char* names) {
  if ((value & ~known) != 0) fail(SPARSEK_BAD_ARGUMENT, "%s = %d has bits other than %s", member, value, names);
}

}  // namespace

void require_served(const sparsek_bsr& bsr) {
  require_flags(bsr.flags, SPARSEK_BSR_SORT | SPARSEK_BSR_ASYNC | SPARSEK_BSR_BOUND | SPARSEK_BSR_FROZEN, "bsr->flags",
                "SPARSEK_BSR_SORT (1), SPARSEK_BSR_ASYNC (2), SPARSEK_BSR_BOUND (4) and SPARSEK_BSR_FROZEN (8)");
  constexpr int32_t kBoth = SPARSEK_BSR_FROZEN | SPARSEK_BSR_ASYNC;
  if (bsr.memory == SPARSEK_DEVICE && (bsr.flags & kBoth) == kBoth) {
    fail(SPARSEK_BAD_ARGUMENT,
         "bsr->flags has SPARSEK_BSR_FROZEN and SPARSEK_BSR_ASYNC: plans that wait for nothing keep no values, leave "
         "one "
         "of the two out");
  }
  if ((bsr.flags & SPARSEK_BSR_BOUND) != 0) require_null(bsr.block_idx, "bsr->block_idx, with SPARSEK_BSR_BOUND,");
}

void require_served(const sparsek_plan_options& options) {
  require_product("options", {options.op, options.order_b, options.order_c, options.order_x, options.ldc, options.ldx,
                              options.bias, "bias"});
  require_served_one(options.compute, "options->compute", kComputes);
  require_flags(options.flags, SPARSEK_OWN_KERNELS | SPARSEK_NO_USER_CACHE | SPARSEK_BATCH_INVARIANT, "options->flags",
                "SPARSEK_OWN_KERNELS (1), SPARSEK_NO_USER_CACHE (2) and SPARSEK_BATCH_INVARIANT (4)");
}

void require_served(const sparsek_check_args& args) {
  require_product("args",
                  {args.op, args.order_b, args.order_c, args.order_x, args.ldc, args.ldx, args.bias_kind, "bias_kind"});
}

void require_served(const sparsek_multiply_args& args) {
  require_flags(args.flags, SPARSEK_TRUSTED, "args->flags", "SPARSEK_TRUSTED (1)");
}

}  // namespace sparsek
