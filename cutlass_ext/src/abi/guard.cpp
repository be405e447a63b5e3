// SPDX-License-Identifier: Apache-2.0
#include "abi/guard.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <new>

#include "abi/error.h"

namespace sparsek {
namespace {

// A plain array, so that keeping the message of a failed allocation allocates nothing.
thread_local char message[1024];

constexpr int kRelaxed = 2;  // cudaStreamCaptureModeRelaxed
std::atomic<ExchangeCaptureMode> exchange_capture_mode{nullptr};

sparsek_status record(sparsek_status status, const char* text) noexcept {
  std::snprintf(message, sizeof(message), "%s", text);
  return status;
}

}  // namespace

const char* last_error() noexcept { return message; }

void clear_last_error() noexcept { message[0] = '\0'; }

sparsek_status record_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return record(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return record(SPARSEK_OUT_OF_MEMORY, "host memory is exhausted");
  } catch (const std::exception& error) {
    return record(SPARSEK_INTERNAL, error.what());
  } catch (...) {
    return record(SPARSEK_INTERNAL, "an exception of unknown type");
  }
}

void set_capture_mode_exchange(ExchangeCaptureMode exchange) noexcept { exchange_capture_mode = exchange; }

CaptureScope::CaptureScope() noexcept : exchange_(exchange_capture_mode) {
  if (exchange_ != nullptr) before_ = exchange_(kRelaxed);
}

CaptureScope::~CaptureScope() {
  if (exchange_ != nullptr) exchange_(before_);
}

}  // namespace sparsek
