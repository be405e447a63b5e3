// SPDX-License-Identifier: Apache-2.0
// The text of a tuning file: a header line with its version, and a line for each record. Lines that
// begin with # are for people; they are not kept when the file is written again.
#pragma once

#include <string>
#include <string_view>

#include "tune/tuning_records.h"

namespace sparsek::tune {

// Raised when a record gets another field, or an enumeration in it another name, so that a library which does not know
// them rejects the file.
inline constexpr int kTuningVersion = 1;

enum class TuningState {
  kAbsent,     // there is no file
  kWhole,      // no fault
  kDamaged,    // some lines are not records; the others are good
  kForeign,    // not a tuning file, or one of another version
  kUnreadable  // not a regular file, or it cannot be read
};

struct TuningContent {
  TuningState state = TuningState::kAbsent;
  TuningRecords records;  // empty for a foreign or unreadable file
  std::string fault;      // what is wrong with it, or ""
};

// An empty text is whole.
TuningContent parse_tuning_text(std::string_view text);

// Writes the records sorted by age, so that equal records give equal text.
std::string tuning_text(const TuningRecords& records);

}  // namespace sparsek::tune
