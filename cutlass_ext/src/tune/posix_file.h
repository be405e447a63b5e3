// SPDX-License-Identifier: Apache-2.0
// Files by system calls, which tell what went wrong. Faults are thrown as Error with SPARSEK_IO_ERROR.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace sparsek::tune {

// Throws "PATH: WHAT failed: CAUSE", with the mend where there is one; code is errno's.
[[noreturn]] void fail_io(const std::string& path, const char* what, int code);

// An open file. Closed with it, whatever happens.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

// open(2), again where a signal comes between; closed in programs that the process starts. Not open: see errno.
Descriptor open_file(const std::string& path, int flags, unsigned mode = 0);

// All that is in the file, and no more than `limit` bytes. 0, or errno's.
int read_all(const Descriptor& file, size_t limit, std::string& text);
// 0, or errno's.
int write_all(const Descriptor& file, std::string_view text);

// The folder that the path lies in, "." where it names none.
std::string folder_of(const std::string& path);
// Makes a folder and those above it that are missing, for the user alone.
void make_folders(const std::string& path);
// Makes what was renamed or removed in it last. A file system that cannot is none to fail for.
void sync_folder(const std::string& path);

}  // namespace sparsek::tune
