// SPDX-License-Identifier: Apache-2.0
// The measurements for a key, and the line of a tuning file that holds them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tune/tuning_key.h"

namespace sparsek::tune {

struct TuningCandidate {
  std::string kernel;
  double seconds = 0;        // median of a product
  double spread = 0;         // distance of the quartiles of the times / seconds
  double setup_seconds = 0;  // converting new values to its layout
};

// All candidates that were measured, the best first: where it does not serve a product, the next one is taken.
struct TuningRecord {
  TuningKey key;
  std::vector<TuningCandidate> candidates;
  int64_t measured = 0;  // time of measurement: seconds since 1970-01-01 00:00 UTC
};

// Why the record cannot be kept, or "": it needs candidates with names and times, and a date before the year 10000.
std::string record_fault(const TuningRecord& record);

// "KEY date=2026-11-21T18:30:00Z | kernel seconds spread setup | ...", KEY being key_text's. The record has no fault.
std::string record_line(const TuningRecord& record);

// Parses the output of record_line; false for any other line, or where the record has a fault.
bool parse_record(std::string_view line, TuningRecord& record);

}  // namespace sparsek::tune
