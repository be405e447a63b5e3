// SPDX-License-Identifier: Apache-2.0
// Where a user's measurements are kept.
#pragma once

#include <string>

namespace sparsek::tune {

inline constexpr const char* kCacheVariable = "SPARSEK_TUNING_CACHE";

struct CachePath {
  std::string path;      // "" where measurements are not kept
  std::string why_none;  // then why, and what to do
};

// SPARSEK_TUNING_CACHE (a file; "off" for none), else sparsek/tuning.txt in XDG_CACHE_HOME or in HOME/.cache.
CachePath user_cache_path();

}  // namespace sparsek::tune
