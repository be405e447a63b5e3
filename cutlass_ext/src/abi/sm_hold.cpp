// SPDX-License-Identifier: Apache-2.0
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

constexpr double kLongest = 60;  // seconds

}  // namespace

sparsek_status sms_hold(sparsek_context* context, int32_t count, double seconds, sparsek_sm_hold** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(context, "context");
    if (count < 1) fail(SPARSEK_BAD_SIZE, "count = %d is below 1", count);
    if (!(seconds > 0 && seconds <= kLongest)) {
      fail(SPARSEK_BAD_ARGUMENT, "seconds = %g is not above 0 and at most %g", seconds, kLongest);
    }
    auto hold = std::make_unique<sparsek_sm_hold>();
    hold->backend = context->backend;
    hold->state = context->backend->hold_sms(count, seconds);
    *out = hold.release();
  });
}

sparsek_status sms_release(sparsek_sm_hold* hold, int32_t* expired) noexcept {
  return guard([&] {
    if (expired != nullptr) *expired = 0;
    require_not_null(hold, "hold");
    if (hold->backend->is_lost()) return;
    const std::unique_ptr<sparsek_sm_hold> owner(hold);
    const bool was_free = hold->state->release();
    if (expired != nullptr) *expired = was_free ? 1 : 0;
  });
}

}  // namespace sparsek::entry
