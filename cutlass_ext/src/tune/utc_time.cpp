// SPDX-License-Identifier: Apache-2.0
#include "tune/utc_time.h"

#include <ctime>

namespace sparsek::tune {
namespace {

constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

int64_t now() { return std::time(nullptr); }

std::string format_time(int64_t time) {
  const std::time_t seconds = time;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), kFormat, &parts));
}

bool parse_time(std::string_view text, int64_t& time) {
  std::tm parts{};
  const std::string copy(text);
  const char* const end = strptime(copy.c_str(), kFormat, &parts);
  if (end == nullptr || *end != '\0') return false;
  time = timegm(&parts);
  // strptime accepts the 31st of February.
  return time >= 0 && time <= kLastTime && format_time(time) == text;
}

}  // namespace sparsek::tune
