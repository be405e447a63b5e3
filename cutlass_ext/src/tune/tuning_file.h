// SPDX-License-Identifier: Apache-2.0
// A tuning file on disk. It is replaced atomically, by one writer at a time, and read without a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tune/tuning_text.h"

namespace sparsek::tune {

// Two stamps are equal only if the file was not changed in between.
struct FileStamp {
  int64_t modified_ns = 0;
  int64_t size = -1;  // -1: there is no file
  uint64_t inode = 0;
};
bool operator==(const FileStamp& a, const FileStamp& b);
FileStamp stamp_of(const std::string& path);

// Reads the file. A fault begins with the path.
TuningContent read_tuning_file(const std::string& path);

enum class Target {
  kCache,  // the user's: missing folders are made; a file with a fault is set aside, and its good lines are kept
  kFile    // a file named by the caller: it is written only where it has no fault or does not exist
};

// Reads the file, lets `change` alter its records and, where that returns true or the file was damaged, writes it.
// Returns a warning, or "". Throws SPARSEK_IO_ERROR where it cannot be written: the file is then unchanged.
//
// A file that is set aside is kept as PATH.set-aside-TIME, with a number appended where that name is taken.
std::string update_tuning_file(const std::string& path, Target target,
                               const std::function<bool(TuningRecords&)>& change);

// Removes the file and reports how many records it had; a file with a fault is set aside. Returns and throws like
// update_tuning_file.
std::string remove_tuning_file(const std::string& path, Target target, int64_t& records);

}  // namespace sparsek::tune
