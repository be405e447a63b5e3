// SPDX-License-Identifier: Apache-2.0
// The boundary between C++ and C: an exception becomes a status and a message for the calling thread.
#pragma once

#include <utility>

#include "sparsek.h"

namespace sparsek {

// The message of this thread's last call; "" where it succeeded.
const char* last_error() noexcept;
void clear_last_error() noexcept;

// Call it in a catch block: stores the message of the current exception and returns its status.
sparsek_status record_exception() noexcept;

template <class Body>
sparsek_status guard(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
  } catch (...) {
    return record_exception();
  }
  clear_last_error();
  return SPARSEK_OK;
}

}  // namespace sparsek
