// SPDX-License-Identifier: Apache-2.0
#include "abi/error.h"

#include <cstdarg>
#include <cstdio>

namespace sparsek {

void fail(sparsek_status status, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message, sizeof(message), format, arguments);
  va_end(arguments);
  throw Error(status, message);
}

}  // namespace sparsek
