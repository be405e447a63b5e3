// SPDX-License-Identifier: Apache-2.0
// Records by their keys, one of each.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tune/tuning_record.h"

namespace sparsek::tune {

class TuningRecords {
 public:
  // What a file keeps at most: some megabytes.
  static constexpr size_t kMost = 4096;

  // Takes the record in, instead of an older one of its key, or one of the same second. False where that changes
  // nothing.
  bool merge(const TuningRecord& record);
  // Takes the record in, whatever there is of its key.
  void put(const TuningRecord& record);
  // Removes this very record; another one of its key stays.
  void erase(const TuningRecord& record);

  // The record of the key, else that of the same key for every build; null where there is none. Lives until the next
  // change.
  const TuningRecord* find(const TuningKey& key) const;

  // The oldest come first; those of one second are ordered by their keys.
  std::vector<const TuningRecord*> by_age() const;
  // Keeps the newest kMost.
  void drop_oldest();

  size_t size() const { return records_.size(); }

 private:
  std::map<std::string, TuningRecord> records_;  // by key_text
};

}  // namespace sparsek::tune
