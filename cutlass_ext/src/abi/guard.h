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

// How the CUDA back-end keeps a call from spoiling captures of streams into graphs: exchanges this thread's capture
// mode for `mode` and returns the one before. Set when a back-end is made that needs it.
using ExchangeCaptureMode = int (*)(int mode) noexcept;
void set_capture_mode_exchange(ExchangeCaptureMode exchange) noexcept;

// For the length of a call, lets it allocate, free and wait while any stream is being captured, by this thread or
// another. What it does is no part of the graph.
class CaptureScope {
 public:
  CaptureScope() noexcept;
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  const ExchangeCaptureMode exchange_;
  int before_ = 0;
};

// For calls that only put work into a stream, and are to be fast: where they do more, they see to captures themselves.
template <class Body>
sparsek_status guard_enqueue(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
  } catch (...) {
    return record_exception();
  }
  clear_last_error();
  return SPARSEK_OK;
}

template <class Body>
sparsek_status guard(Body&& body) noexcept {
  const CaptureScope scope;
  return guard_enqueue(std::forward<Body>(body));
}

}  // namespace sparsek
