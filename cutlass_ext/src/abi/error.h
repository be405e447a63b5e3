// SPDX-License-Identifier: Apache-2.0
// Errors inside the library: thrown as Error, turned into a status and a message at the ABI.
#pragma once

#include <stdexcept>
#include <string>

#include "sparsek.h"

namespace sparsek {

class Error : public std::runtime_error {
 public:
  Error(sparsek_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  sparsek_status status() const noexcept { return status_; }

 private:
  sparsek_status status_;
};

// Throws Error with a printf-style message. A message names the thing, the cause and, where there is one, the fix.
[[noreturn]] void fail(sparsek_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace sparsek
