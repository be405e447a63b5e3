// SPDX-License-Identifier: Apache-2.0
// What a measurement depends on: products with equal keys get the same kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sparsek::tune {

// The build of records in a shipped table: they serve every build of this library.
inline constexpr const char* kShippedBuild = "shipped";

// A new member must be added to the list of fields in tuning_key.cpp too, and raises kTuningVersion (tuning_text.h),
// unless it is an optional one: that is written only where it is not 0, and an older library, for whose products it
// would be 0, cannot read such an entry: it takes the file to be damaged, and keeps the entries that it can read.
struct TuningKey {
  std::string device;    // "NVIDIA H200"; on the CPU back-end, its instruction set
  int32_t sm_count = 0;  // on the CPU back-end, its threads
  std::string build;     // library_build() (build_id.h), or kShippedBuild
  std::string op;        // "dsd", "sdd/xb": the product, and its column-major operands
  int64_t m = 0, n = 0, k = 0;
  int64_t bm = 0, bk = 0;
  int32_t dtype = 0;       // sparsek_dtype of A,
  int32_t dtype_b = 0;     // of B where it is another, else 0,
  int32_t dtype_c = 0;     // and of C
  int32_t bias = 0;        // sparsek_bias
  int32_t activation = 0;  // sparsek_activation
  // Statistics of the pattern, in coarse classes, so that similar patterns share a key.
  int32_t density_class = 0;
  int32_t spread_class = 0;  // spread of the lengths of block rows
  int32_t union_class = 0;   // columns that neighbouring block rows have in common
  int32_t kept_values = 0;   // 1: plans of some candidates keep the values in a layout of their own, else 0
};

// The key as text, the same for equal keys only: "device=NVIDIA%20H200 sm_count=132 ...".
std::string key_text(const TuningKey& key);

// Parses the output of key_text; false for any other text.
bool parse_key(std::string_view text, TuningKey& key);

// A name for the key, the same on every machine: 16 letters from k to z, which cannot be mistaken for a number.
std::string key_id(const TuningKey& key);

}  // namespace sparsek::tune
