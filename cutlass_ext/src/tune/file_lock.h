// SPDX-License-Identifier: Apache-2.0
// One writer at a time, among the threads and processes of a machine.
#pragma once

#include <chrono>
#include <string>

#include "tune/posix_file.h"

namespace sparsek::tune {

// Holds the lock from its making to its end. The lock is flock's, on a file of its own, which is there as long as the
// lock is held; a process that is killed leaves the file but not the lock.
class FileLock {
 public:
  // Waits while others hold it, for that long at most: a write takes milliseconds. Throws SPARSEK_IO_ERROR.
  explicit FileLock(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(10));
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace sparsek::tune
