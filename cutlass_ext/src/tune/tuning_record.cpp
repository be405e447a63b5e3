// SPDX-License-Identifier: Apache-2.0
#include "tune/tuning_record.h"

#include <cmath>

#include "tune/utc_time.h"
#include "tune/word.h"

namespace sparsek::tune {
namespace {

constexpr std::string_view kDate = " date=";
constexpr std::string_view kBar = " | ";

bool is_duration(double value) { return std::isfinite(value) && value >= 0; }

bool parse_candidate(std::string_view text, TuningCandidate& candidate) {
  return unescape(take_until(text, " "), candidate.kernel) && parse_number(take_until(text, " "), candidate.seconds) &&
         parse_number(take_until(text, " "), candidate.spread) && parse_number(text, candidate.setup_seconds);
}

}  // namespace

std::string record_fault(const TuningRecord& record) {
  if (record.candidates.empty()) return "no kernel was measured";
  if (record.measured < 0 || record.measured > kLastTime) return "its date is not from 1970 to 9999";
  for (const TuningCandidate& candidate : record.candidates) {
    if (candidate.kernel.empty()) return "a kernel has no name";
    if (!is_duration(candidate.seconds) || !is_duration(candidate.spread) || !is_duration(candidate.setup_seconds)) {
      return "a time or spread of " + candidate.kernel + " is negative or not finite";
    }
  }
  return "";
}

std::string record_line(const TuningRecord& record) {
  std::string line = key_text(record.key);
  line += kDate;
  line += format_time(record.measured);
  for (const TuningCandidate& candidate : record.candidates) {
    line += kBar;
    line += escape(candidate.kernel);
    for (const double value : {candidate.seconds, candidate.spread, candidate.setup_seconds}) {
      line += ' ';
      line += number_word(value);
    }
  }
  return line;
}

bool parse_record(std::string_view line, TuningRecord& record) {
  record = {};
  std::string_view rest = line;
  std::string_view date = take_until(rest, kBar);
  const std::string_view key = take_until(date, kDate);
  if (!parse_key(key, record.key) || !parse_time(date, record.measured)) return false;
  while (!rest.empty()) {
    record.candidates.emplace_back();
    if (!parse_candidate(take_until(rest, kBar), record.candidates.back())) return false;
  }
  return record_fault(record).empty();
}

}  // namespace sparsek::tune
