// SPDX-License-Identifier: Apache-2.0
// The measurements that come with the library: the files of cutlass_ext/tuning.
#pragma once

#include "tune/tuning_text.h"

namespace sparsek::tune {

struct ShippedFile {
  const char* name;  // "h200.txt"
  const char* text;
};

// Generated from the folder, in the order of the names.
extern const ShippedFile kShippedFiles[];
extern const int kShippedFileCount;

// All of them together, read once.
const TuningContent& shipped_table();

}  // namespace sparsek::tune
