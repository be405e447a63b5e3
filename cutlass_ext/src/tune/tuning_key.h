// SPDX-License-Identifier: Apache-2.0
// What a measurement depends on: two products of the same key are served by the same kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sparsek::tune {

// The build of records in a shipped table: they are of every build of this library.
inline constexpr const char* kShippedBuild = "shipped";

// A member that is added goes into the list of fields in tuning_key.cpp too, and raises kTuningVersion (tuning_text.h).
struct TuningKey {
  std::string device;    // "NVIDIA H200"; of the CPU back-end, its instruction set
  int32_t sm_count = 0;  // of the CPU back-end, its threads
  std::string build;     // of the library (build_id.h), or kShippedBuild
  std::string op;        // "dsd"
  int64_t m = 0, n = 0, k = 0;
  int64_t bm = 0, bk = 0;
  int32_t dtype = 0, dtype_c = 0;  // sparsek_dtype
  int32_t bias = 0;                // sparsek_bias
  int32_t activation = 0;          // sparsek_activation
  // Statistics of the pattern, in coarse classes, so that like patterns have one key.
  int32_t density_class = 0;
  int32_t spread_class = 0;  // of the lengths of block rows
  int32_t union_class = 0;   // of what neighbouring block rows have in common
};

// The key in words, the same for equal keys and for them alone: "device=NVIDIA%20H200 sm_count=132 ...".
std::string key_text(const TuningKey& key);

// Reads what key_text writes; false where the text is anything else.
bool parse_key(std::string_view text, TuningKey& key);

// 16 letters from k to z that stand for the key on every machine, to name it by: no number looks like them.
std::string key_id(const TuningKey& key);

}  // namespace sparsek::tune
