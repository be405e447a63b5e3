// SPDX-License-Identifier: Apache-2.0
// The measurements that ship with the library: the files of cutlass_ext/tuning.
#pragma once

#include "tune/tuning_text.h"

namespace sparsek::tune {

struct ShippedFile {
  const char* name;  // "h200.txt"
  const char* text;
};

// Generated from the folder, sorted by name.
extern const ShippedFile kShippedFiles[];
extern const int kShippedFileCount;

// The records of all files together, parsed once.
const TuningContent& shipped_table();

}  // namespace sparsek::tune
