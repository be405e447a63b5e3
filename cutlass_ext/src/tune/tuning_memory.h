// SPDX-License-Identifier: Apache-2.0
// What has been measured: by this process, by others before it, and before the library was shipped.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tune/tuning_file.h"

namespace sparsek::tune {

enum class TuningSource { kNone, kCache, kTable };

struct TuningAnswer {
  TuningSource source = TuningSource::kNone;
  TuningRecord record;  // of kCache and kTable
  std::string warning;  // a fault of the file, told once for each state of it; "" where there is none
};

// May be used from several threads at once. No function throws for a fault of the file.
class TuningMemory {
 public:
  // A path of its own, "" for no file; without one, that of user_cache_path, asked for each time. The table outlives
  // it.
  TuningMemory(const TuningRecords& table, std::optional<std::string> path);

  // The process's own.
  static TuningMemory& process();

  // The file is read where it has changed since.
  TuningAnswer lookup(const TuningKey& key);

  // Keeps the record, instead of any of its key, in the file. What cannot be written is kept in this process, where
  // there is no path silently, and tried again with the next one. Returns a warning, or "".
  std::string remember(const TuningRecord& record);

 private:
  std::string path() const;
  std::string refresh(const std::string& path);

  const TuningRecords& table_;
  const std::optional<std::string> given_path_;

  std::mutex mutex_;  // of what follows; not held while a file is written
  TuningRecords unwritten_;
  std::string read_path_;
  FileStamp read_stamp_;
  TuningRecords read_;
};

}  // namespace sparsek::tune
