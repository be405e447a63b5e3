// SPDX-License-Identifier: Apache-2.0
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"

namespace sparsek::entry {

sparsek_status stream_create(sparsek_context* context, sparsek_stream* out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(context, "context");
    *out = context->backend->stream_create();
  });
}

sparsek_status stream_destroy(sparsek_context* context, sparsek_stream stream) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    if (stream != nullptr && !context->backend->is_lost()) context->backend->stream_destroy(stream);
  });
}

sparsek_status stream_synchronize(sparsek_context* context, sparsek_stream stream) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    context->backend->stream_synchronize(stream);
  });
}

sparsek_status stream_query(sparsek_context* context, sparsek_stream stream, int32_t* done) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    require_not_null(done, "done");
    *done = context->backend->stream_done(stream) ? 1 : 0;
  });
}

}  // namespace sparsek::entry
