// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <cmath>

#include "abi/abi_size.h"
#include "abi/attention_args.h"
#include "abi/entry.h"
#include "abi/error.h"
#include "abi/guard.h"
#include "abi/require.h"
#include "cpu/check_attention.h"

namespace sparsek::entry {
namespace {

constexpr const char* kOutputs[] = {"O", "LSE", "grad_q", "grad_k", "grad_v", "mass", "grad_bias"};

void require_roundoff(double value, const char* member) {
  if (!(value >= 0 && value < 1)) {
    fail(SPARSEK_BAD_ARGUMENT, "args->%s = %g is not in [0, 1): take it from attention_info", member, value);
  }
}

// A reference has a meaning for no others.
void require_scales(const float* scales, int64_t count, const char* member) {
  for (int64_t i = 0; scales != nullptr && i < count; ++i) {
    if (std::isfinite(scales[i]) && scales[i] > 0) continue;
    fail(SPARSEK_BAD_ARGUMENT, "args->args->%s[%" PRId64 "] = %g is not finite and above 0", member, i,
         double{scales[i]});
  }
}

// The output is one that `args` has.
void require_output(const sparsek_attention_check_args& check, const sparsek_attention_args& args) {
  const void* const all[] = {args.o, args.lse, args.grad_q, args.grad_k, args.grad_v, args.mass, args.grad_bias};
  constexpr const char* kMembers[] = {"args->args->o",        "args->args->lse",    "args->args->grad_q",
                                      "args->args->grad_k",   "args->args->grad_v", "args->args->mass",
                                      "args->args->grad_bias"};
  if (check.output < SPARSEK_ATTENTION_O || check.output > SPARSEK_ATTENTION_GRAD_BIAS) {
    fail(SPARSEK_BAD_ARGUMENT, "args->output = %d is none of sparsek_attention_output (0 to 6)", check.output);
  }
  require_not_null(all[check.output], kMembers[check.output]);
}

}  // namespace

sparsek_status attention_check(const sparsek_attention_check_args* args, sparsek_check_report* out) noexcept {
  return guard([&] {
    checked_abi_size(out, "out");
    const sparsek_attention_check_args check = read_struct(args, "args");
    const sparsek_attention_options options = read_struct(check.options, "args->options");
    AttentionShape shape = resolve_attention_shape(options);
    const AttentionLayout layout = resolve_attention_layout(options, shape);
    const sparsek_attention_args given = read_struct(check.args, "args->args");
    require_output(check, given);
    const bool of_gradient = (check.output >= SPARSEK_ATTENTION_GRAD_Q && check.output <= SPARSEK_ATTENTION_GRAD_V) ||
                             check.output == SPARSEK_ATTENTION_GRAD_BIAS;
    const sparsek_attention_args operands =
        resolve_attention_args(shape, given, of_gradient ? AttentionCall::kBackward : AttentionCall::kForward);
    require_scales(operands.scale_q, shape.batch * shape.heads_q, "scale_q");
    require_scales(operands.scale_k, shape.batch * shape.heads_k, "scale_k");
    require_scales(operands.scale_v, shape.batch * shape.heads_k, "scale_v");
    require_roundoff(check.unit_roundoff, "unit_roundoff");
    require_roundoff(check.product_roundoff, "product_roundoff");
    if (check.threads < 0) fail(SPARSEK_BAD_ARGUMENT, "args->threads = %d is negative", check.threads);
    sparsek_check_report report{};
    cpu::check_attention({shape, layout, operands, check.unit_roundoff, check.product_roundoff,
                          static_cast<sparsek_attention_output>(check.output), check.threads},
                         report);
    write_struct(out, report, "out");
    if (report.failures > 0) {
      const char* const name = kOutputs[check.output];
      fail(SPARSEK_CHECK_FAILED,
           "%" PRId64 " of %" PRId64 " elements are beyond their bound, first %s[%" PRId64 ", %" PRId64
           "]; worst %s[%" PRId64 ", %" PRId64 "] = %.9g, reference %.9g, bound %.3g",
           report.failures, report.elements, name, report.first_row, report.first_col, name, report.worst_row,
           report.worst_col, report.worst_c, report.worst_ref, report.worst_bound);
    }
  });
}

}  // namespace sparsek::entry
