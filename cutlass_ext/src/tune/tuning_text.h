// SPDX-License-Identifier: Apache-2.0
// The text of a tuning file: a line that says what it is and of which version, and a line for each record. Lines that
// begin with # are for people; they are not kept when the file is written again.
#pragma once

#include <string>
#include <string_view>

#include "tune/tuning_records.h"

namespace sparsek::tune {

// Raised when a record gets another field, or an enumeration in it another name: a library that does not know them
// then sees that the file is not for it.
inline constexpr int kTuningVersion = 1;

enum class TuningState {
  kAbsent,     // there is no file
  kWhole,      // no fault
  kDamaged,    // some lines are no records; the others are good
  kForeign,    // no tuning file, or one of another version
  kUnreadable  // no ordinary file, or it cannot be read
};

struct TuningContent {
  TuningState state = TuningState::kAbsent;
  TuningRecords records;  // none of a foreign or unreadable file
  std::string fault;      // what is wrong with it, "" where nothing is
};

// An empty text is whole: nothing is lost in it.
TuningContent parse_tuning_text(std::string_view text);

// The records by age, so that the same ones give the same text.
std::string tuning_text(const TuningRecords& records);

}  // namespace sparsek::tune
