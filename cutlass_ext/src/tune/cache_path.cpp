// SPDX-License-Identifier: Apache-2.0
#include "tune/cache_path.h"

#include <cstdlib>

namespace sparsek::tune {
namespace {

constexpr const char* kName = "/sparsek/tuning.txt";

// "" in a set-user-ID program: it must not write where the calling user's environment says.
std::string variable(const char* name) {
  const char* const value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

CachePath user_cache_path() {
  const std::string given = variable(kCacheVariable);
  if (given == "off") {
    return {"", std::string(kCacheVariable) + " is off: unset it, or set it to a file, to keep measurements"};
  }
  if (!given.empty()) return {given, ""};
  const std::string xdg = variable("XDG_CACHE_HOME");
  if (!xdg.empty() && xdg[0] == '/') return {xdg + kName, ""};  // the XDG specification says to ignore relative paths
  const std::string home = variable("HOME");
  if (!home.empty()) return {home + "/.cache" + kName, ""};
  return {"", std::string("there is no HOME: set ") + kCacheVariable + " to a file to keep measurements"};
}

}  // namespace sparsek::tune
