// SPDX-License-Identifier: Apache-2.0
// Records by key, one for each key.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tune/tuning_record.h"

namespace sparsek::tune {

class TuningRecords {
 public:
  // Limit on the records of a file: some megabytes.
  static constexpr size_t kMost = 4096;

  // Adds the record, unless there is a newer one with its key; replaces an older one or one of the same second. Returns
  // whether anything changed.
  bool merge(const TuningRecord& record);
  // Adds the record, replacing any with its key.
  void put(const TuningRecord& record);
  // Removes exactly this record; a different one with its key stays.
  void erase(const TuningRecord& record);

  // The record of the key, else the shipped record of the same product; null where there is none. Valid until the next
  // change.
  const TuningRecord* find(const TuningKey& key) const;

  // Sorted by age, the oldest first; those of one second by key.
  std::vector<const TuningRecord*> by_age() const;
  // Keeps the newest kMost.
  void drop_oldest();

  size_t size() const { return records_.size(); }

 private:
  std::map<std::string, TuningRecord> records_;  // by key_text
};

}  // namespace sparsek::tune
