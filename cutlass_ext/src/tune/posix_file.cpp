// SPDX-License-Identifier: Apache-2.0
#include "tune/posix_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "abi/error.h"

namespace sparsek::tune {
namespace {

const char* fix_for(int code) {
  switch (code) {
    case ENOSPC:
    case EDQUOT:
      return ": free some of its disk";
    case EFBIG:
      return ": raise the limit on the size of files (ulimit -f)";
    case ENOENT:
    case ENOTDIR:
      return ": make its folder first";
    case EACCES:
    case EPERM:
      return ": change its permissions";
    default:
      return "";
  }
}

}  // namespace

void fail_io(const std::string& path, const char* what, int code) {
  fail(SPARSEK_IO_ERROR, "%s: %s failed: %s%s", path.c_str(), what, std::generic_category().message(code).c_str(),
       fix_for(code));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void Descriptor::reset() {
  if (is_open()) close(release());
}

Descriptor open_file(const std::string& path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (fd < 0 && errno == EINTR);
  return Descriptor(fd);
}

int read_all(const Descriptor& file, size_t limit, std::string& text) {
  text.clear();
  for (;;) {
    constexpr size_t kStep = size_t{1} << 16;
    const size_t at = text.size(), step = std::min(kStep, limit - at);
    if (step == 0) return 0;
    text.resize(at + step);
    const ssize_t got = read(file.get(), &text[at], step);
    text.resize(at + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got == 0) return 0;
    if (got < 0 && errno != EINTR) return errno;
  }
}

int write_all(const Descriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(file.get(), text.data(), text.size());
    if (put > 0) text.remove_prefix(static_cast<size_t>(put));
    if (put == 0) return ENOSPC;
    if (put < 0 && errno != EINTR) return errno;
  }
  return 0;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void make_folders(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return;
  if (errno != ENOENT || path == folder_of(path)) fail_io(path, "making the folder", errno);
  make_folders(folder_of(path));
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) fail_io(path, "making the folder", errno);
}

void sync_folder(const std::string& path) {
  const Descriptor folder = open_file(path, O_RDONLY | O_DIRECTORY);
  if (folder.is_open()) fsync(folder.get());
}

}  // namespace sparsek::tune
