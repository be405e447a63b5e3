// SPDX-License-Identifier: Apache-2.0
#include "tune/tuning_text.h"

#include "tune/word.h"

namespace sparsek::tune {
namespace {

constexpr std::string_view kTitle = "sparsek tuning cache, version ";

std::string header() { return std::string(kTitle) + number_word(kTuningVersion); }

// The fault of a file with this first line; "" where it is of this version.
std::string header_fault(std::string_view line) {
  if (line == header()) return "";
  int64_t version = 0;
  if (line.substr(0, kTitle.size()) == kTitle && parse_number(line.substr(kTitle.size()), version)) {
    return "it is of version " + number_word(version) + ", written by " +
           (version > kTuningVersion ? "a newer" : "an older") + " sparsek; this one reads and writes version " +
           number_word(kTuningVersion);
  }
  return "its first line is not \"" + header() + "\"";
}

}  // namespace

TuningContent parse_tuning_text(std::string_view text) {
  TuningContent content;
  content.state = TuningState::kWhole;
  if (text.empty()) return content;
  const bool is_cut = text.back() != '\n';
  std::string_view rest = text;
  content.fault = header_fault(take_until(rest, "\n"));
  if (!content.fault.empty()) {
    content.state = TuningState::kForeign;
    return content;
  }
  int64_t bad = 0, first = 0;
  TuningRecord record;
  for (int64_t number = 2; !rest.empty(); ++number) {
    const std::string_view line = take_until(rest, "\n");
    const bool is_last_and_cut = is_cut && rest.empty();
    if (!is_last_and_cut && line.substr(0, 1) == "#") continue;
    if (!is_last_and_cut && parse_record(line, record)) {
      content.records.merge(record);
    } else if (++bad == 1) {
      first = number;
    }
  }
  if (bad > 0) {
    content.fault = number_word(bad) + (bad == 1 ? " line is" : " lines are") + " no record, " +
                    (bad == 1 ? "" : "the first ") + "line " + number_word(first);
  }
  if (is_cut) content.fault += std::string(bad > 0 ? ", and " : "") + "it ends in the middle of a line";
  if (!content.fault.empty()) content.state = TuningState::kDamaged;
  return content;
}

std::string tuning_text(const TuningRecords& records) {
  std::string text = header() + '\n';
  for (const TuningRecord* const record : records.by_age()) {
    text += record_line(*record);
    text += '\n';
  }
  return text;
}

}  // namespace sparsek::tune
