// SPDX-License-Identifier: Apache-2.0
// The path of the user's tuning cache.
#pragma once

#include <string>

namespace sparsek::tune {

inline constexpr const char* kCacheVariable = "SPARSEK_TUNING_CACHE";

struct CachePath {
  std::string path;      // "" where measurements are not kept
  std::string why_none;  // where path is "": the reason, and what to do
};

// SPARSEK_TUNING_CACHE (a file; "off" for none), else sparsek/tuning.txt in XDG_CACHE_HOME or in HOME/.cache.
CachePath user_cache_path();

}  // namespace sparsek::tune
