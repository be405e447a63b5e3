// SPDX-License-Identifier: Apache-2.0
#include "tune/shipped_table.h"

namespace sparsek::tune {
namespace {

TuningContent read_shipped() {
  TuningContent all;
  all.state = TuningState::kWhole;
  for (int i = 0; i < kShippedFileCount; ++i) {
    const TuningContent content = parse_tuning_text(kShippedFiles[i].text);
    for (const TuningRecord* const record : content.records.by_age()) all.records.merge(*record);
    if (content.fault.empty()) continue;
    all.state = TuningState::kDamaged;
    all.fault += (all.fault.empty() ? "" : "; ") + std::string(kShippedFiles[i].name) + ": " + content.fault;
  }
  return all;
}

}  // namespace

const TuningContent& shipped_table() {
  // Never destroyed: threads may outlive main.
  static const TuningContent* const table = new TuningContent(read_shipped());
  return *table;
}

}  // namespace sparsek::tune
