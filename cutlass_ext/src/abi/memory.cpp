// SPDX-License-Identifier: Apache-2.0
// Buffers in the back-end's memory.
#include <algorithm>
#include <cstdint>

#include "abi/entry.h"
#include "abi/error.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

void require_size(size_t bytes) {
  if (bytes > static_cast<size_t>(PTRDIFF_MAX)) {
    fail(SPARSEK_BAD_SIZE, "%zu bytes do not fit in an address space", bytes);
  }
}

}  // namespace

sparsek_status buffer_create(sparsek_context* context, size_t bytes, void** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(context, "context");
    require_size(bytes);
    // An empty buffer has an address too, so that null always means "no buffer".
    *out = context->backend->allocate(std::max<size_t>(bytes, 1));
  });
}

sparsek_status buffer_destroy(sparsek_context* context, void* buffer) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    if (buffer != nullptr && !context->backend->is_lost()) context->backend->release(buffer);
  });
}

sparsek_status buffer_write(sparsek_context* context, void* buffer, const void* host, size_t bytes,
                            sparsek_stream stream) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    require_size(bytes);
    if (bytes == 0) return;
    require_not_null(buffer, "buffer");
    require_not_null(host, "host");
    context->backend->write(buffer, host, bytes, stream);
  });
}

sparsek_status buffer_read(sparsek_context* context, void* host, const void* buffer, size_t bytes,
                           sparsek_stream stream) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    require_size(bytes);
    if (bytes == 0) return;
    require_not_null(host, "host");
    require_not_null(buffer, "buffer");
    context->backend->read(host, buffer, bytes, stream);
  });
}

sparsek_status buffer_fill(sparsek_context* context, void* buffer, int32_t byte, size_t bytes,
                           sparsek_stream stream) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    require_size(bytes);
    if (byte < 0 || byte > 255) fail(SPARSEK_BAD_ARGUMENT, "byte = %d is not in [0, 255]", byte);
    if (bytes == 0) return;
    require_not_null(buffer, "buffer");
    context->backend->fill(buffer, byte, bytes, stream);
  });
}

}  // namespace sparsek::entry
