// SPDX-License-Identifier: Apache-2.0
#include "tune/tuning_memory.h"

#include "abi/error.h"
#include "abi/made_once.h"
#include "tune/cache_path.h"
#include "tune/shipped_table.h"

namespace sparsek::tune {
namespace {

std::atomic<TuningMemory*> of_process{nullptr};  // never destroyed: threads may outlive main

}  // namespace

TuningMemory::TuningMemory(const TuningRecords& table, std::optional<std::string> path)
    : table_(table), given_path_(std::move(path)) {}

TuningMemory& TuningMemory::process() {
  return made_once(of_process, [] { return std::make_unique<TuningMemory>(shipped_table().records, std::nullopt); });
}

std::string TuningMemory::path() const { return given_path_ ? *given_path_ : user_cache_path().path; }

TuningAnswer TuningMemory::lookup(const TuningKey& key) {
  const std::string file = path();
  const std::lock_guard hold(mutex_);
  TuningAnswer answer;
  answer.warning = refresh(file);
  const TuningRecord* record = unwritten_.find(key);
  if (record == nullptr) record = read_.find(key);
  if (record == nullptr) {
    TuningAnswer shipped = lookup_shipped(key);
    shipped.warning = std::move(answer.warning);
    return shipped;
  }
  answer.source = TuningSource::kCache;
  answer.record = *record;
  return answer;
}

TuningAnswer TuningMemory::lookup_shipped(const TuningKey& key) const {
  TuningAnswer answer;
  if (const TuningRecord* const record = table_.find(key)) {
    answer.source = TuningSource::kTable;
    answer.record = *record;
  }
  return answer;
}

uint64_t TuningMemory::version() {
  const std::string file = path();
  const std::lock_guard hold(mutex_);
  const FileStamp stamp = file.empty() ? FileStamp{} : stamp_of(file);
  // The fault of a file that changed is for lookup() to tell.
  return 2 * version_ + (file != read_path_ || !(stamp == read_stamp_));
}

// Reads the file if it changed since it was last read. Returns its fault, or "".
std::string TuningMemory::refresh(const std::string& path) {
  // Taken before the file is read: a file that is replaced meanwhile is read again next time.
  const FileStamp stamp = path.empty() ? FileStamp{} : stamp_of(path);
  if (path == read_path_ && stamp == read_stamp_) return "";
  TuningContent content = path.empty() ? TuningContent{} : read_tuning_file(path);
  const char* const used = content.records.size() == 0 ? "; it is not used" : "; its good lines are used";
  read_ = std::move(content.records);
  ++version_;
  read_path_ = path;
  read_stamp_ = stamp;
  return content.fault.empty() ? "" : content.fault + used;
}

std::string TuningMemory::remember(const TuningRecord& record) {
  const std::string fault = record_fault(record);
  if (!fault.empty()) return "a measurement is not kept: " + fault;
  const std::string file = path();
  std::vector<TuningRecord> batch;
  {
    const std::lock_guard hold(mutex_);
    unwritten_.put(record);
    ++version_;
    unwritten_.drop_oldest();
    if (file.empty()) return "";
    for (const TuningRecord* const waiting : unwritten_.by_age()) batch.push_back(*waiting);
  }
  std::string warning;
  try {
    warning = update_tuning_file(file, Target::kCache, [&](TuningRecords& records) {
      for (const TuningRecord& waiting : batch) records.put(waiting);
      return true;
    });
  } catch (const Error& error) {
    return std::string("measurements are not kept: ") + error.what();
  }
  const std::lock_guard hold(mutex_);
  for (const TuningRecord& written : batch) unwritten_.erase(written);
  return warning;
}

}  // namespace sparsek::tune
