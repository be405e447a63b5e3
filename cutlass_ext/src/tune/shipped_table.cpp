// SPDX-License-Identifier: Apache-2.0
#include "tune/shipped_table.h"

#include "abi/made_once.h"

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

std::atomic<const TuningContent*> table{nullptr};  // never destroyed: threads may outlive main

}  // namespace

const TuningContent& shipped_table() {
  return made_once(table, [] { return std::make_unique<const TuningContent>(read_shipped()); });
}

}  // namespace sparsek::tune
