// SPDX-License-Identifier: Apache-2.0
#include "tune/tuning_records.h"

#include <algorithm>

namespace sparsek::tune {

bool TuningRecords::merge(const TuningRecord& record) {
  const auto [place, is_new] = records_.try_emplace(key_text(record.key), record);
  if (is_new) return true;
  if (record.measured < place->second.measured || record_line(record) == record_line(place->second)) return false;
  place->second = record;
  return true;
}

void TuningRecords::put(const TuningRecord& record) { records_.insert_or_assign(key_text(record.key), record); }

void TuningRecords::erase(const TuningRecord& record) {
  const auto place = records_.find(key_text(record.key));
  if (place != records_.end() && record_line(place->second) == record_line(record)) records_.erase(place);
}

const TuningRecord* TuningRecords::find(const TuningKey& key) const {
  auto place = records_.find(key_text(key));
  if (place == records_.end()) {
    TuningKey every = key;
    every.build = kShippedBuild;
    place = records_.find(key_text(every));
  }
  return place == records_.end() ? nullptr : &place->second;
}

std::vector<const TuningRecord*> TuningRecords::by_age() const {
  std::vector<const TuningRecord*> list;
  list.reserve(records_.size());
  for (const auto& [text, record] : records_) list.push_back(&record);
  std::stable_sort(list.begin(), list.end(),
                   [](const TuningRecord* a, const TuningRecord* b) { return a->measured < b->measured; });
  return list;
}

void TuningRecords::drop_oldest() {
  if (records_.size() <= kMost) return;
  std::vector<const TuningRecord*> old = by_age();
  old.resize(records_.size() - kMost);
  for (const TuningRecord* const record : old) records_.erase(key_text(record->key));
}

}  // namespace sparsek::tune
