// SPDX-License-Identifier: Apache-2.0
// All known measurements: those of this process, of earlier ones, and those that ship with the library.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/fork.h"
#include "tune/tuning_file.h"

namespace sparsek::tune {

enum class TuningSource { kNone, kCache, kTable };

struct TuningAnswer {
  TuningSource source = TuningSource::kNone;
  TuningRecord record;  // for kCache and kTable
  std::string warning;  // a fault of the file, reported once for each state of the file; else ""
};

// Thread-safe. No function throws for a fault of the file.
class TuningMemory {
 public:
  // path: of the file, "" for none; without a value, user_cache_path(), evaluated on each use. The table must outlive
  // this.
  TuningMemory(const TuningRecords& table, std::optional<std::string> path);

  // The instance of the process.
  static TuningMemory& process();

  // Reads the file again where it has changed.
  TuningAnswer lookup(const TuningKey& key);

  // The same from the table that ships with the library alone.
  TuningAnswer lookup_shipped(const TuningKey& key) const;
  // Another number whenever lookup() may give another answer than before.
  uint64_t version();

  // Stores the record in the file, instead of any record with its key. Where it cannot be written, it is kept in this
  // process and written with the next one. Returns a warning, or "" (also where there is no path).
  std::string remember(const TuningRecord& record);

 private:
  std::string path() const;
  std::string refresh(const std::string& path);

  const TuningRecords& table_;
  const std::optional<std::string> given_path_;

  ForkMutex mutex_;  // guards the members below; not held while a file is written
  TuningRecords unwritten_;
  std::string read_path_;
  FileStamp read_stamp_;
  TuningRecords read_;
  uint64_t version_ = 0;
};

}  // namespace sparsek::tune
