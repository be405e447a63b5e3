// SPDX-License-Identifier: Apache-2.0
// A lock between the threads and processes of a machine, for one writer at a time.
#pragma once

#include <chrono>
#include <string>

#include "tune/posix_file.h"

namespace sparsek::tune {

// Holds the lock during its lifetime. It uses flock on a separate file, which exists as long as the lock is held; a
// process that is killed leaves the file but not the lock.
class FileLock {
 public:
  // Waits at most `patience` while others hold the lock: a write takes milliseconds. Throws SPARSEK_IO_ERROR.
  explicit FileLock(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(10));
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace sparsek::tune
