// SPDX-License-Identifier: Apache-2.0
// Files by system calls, whose errno gives the cause. Faults are thrown as Error with SPARSEK_IO_ERROR.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace sparsek::tune {

// Throws "PATH: WHAT failed: CAUSE", with the fix where one is known. code: an errno.
[[noreturn]] void fail_io(const std::string& path, const char* what, int code);

// An open file descriptor, closed by the destructor.
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

// open(2), repeated after EINTR, with O_CLOEXEC. Where the result is not open, errno has the cause.
Descriptor open_file(const std::string& path, int flags, unsigned mode = 0);

// Reads the file into `text`, at most `limit` bytes. Returns 0 or an errno.
int read_all(const Descriptor& file, size_t limit, std::string& text);
// Returns 0 or an errno.
int write_all(const Descriptor& file, std::string_view text);

// The folder of the path, or "." where the path has none.
std::string folder_of(const std::string& path);
// Makes a folder and its missing parents, with mode 0700.
void make_folders(const std::string& path);
// Makes renames and removals in the folder durable. Ignores file systems that cannot do that.
void sync_folder(const std::string& path);

}  // namespace sparsek::tune
