// SPDX-License-Identifier: Apache-2.0
// A tuning file on disk. Written whole or not at all, by one writer at a time; read without a lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tune/tuning_text.h"

namespace sparsek::tune {

// Two of these are equal only if the file was not changed between.
struct FileStamp {
  int64_t modified_ns = 0;
  int64_t size = -1;  // -1: there is no file
  uint64_t inode = 0;
};
bool operator==(const FileStamp& a, const FileStamp& b);
FileStamp stamp_of(const std::string& path);

// What is in the file now; its fault begins with its path.
TuningContent read_tuning_file(const std::string& path);

enum class Target {
  kCache,  // the user's: missing folders are made, and a file with a fault is set aside, its good lines taken over
  kFile    // one that was named for this: it is written only where it has no fault, or is not there
};

// Reads the file, lets `change` alter its records and, where that returns true or the file was damaged, writes it.
// Returns a warning, or "". Throws SPARSEK_IO_ERROR where it cannot be written: it is then as it was.
//
// What is set aside is kept as PATH.set-aside-TIME, with a number behind it where there is one of that name.
std::string update_tuning_file(const std::string& path, Target target,
                               const std::function<bool(TuningRecords&)>& change);

// Removes the file and tells how many records were in it; one with a fault is set aside. Returns and throws as
// update_tuning_file does.
std::string remove_tuning_file(const std::string& path, Target target, int64_t& records);

}  // namespace sparsek::tune
