// SPDX-License-Identifier: Apache-2.0
#include "tuning_trap.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>

namespace trap {
namespace {

int calls_left = 0, error = 0;

void die() { syscall(SYS_kill, getpid(), SIGKILL); }

// True where this call is to fail.
bool is_hit() {
  if (calls_left == 0 || --calls_left > 0) return false;
  if (error == 0) die();
  errno = error;
  return true;
}

}  // namespace

void set(int at, int code) {
  calls_left = at;
  error = code;
}

}  // namespace trap

// The program's own functions come before the C library's.
extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if (trap::is_hit()) return -1;
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

// Half of it is written first: that is what a full disk and a kill leave.
ssize_t write(int fd, const void* data, size_t size) {
  if (trap::calls_left == 1) syscall(SYS_write, fd, data, size / 2);
  if (trap::is_hit()) return -1;
  return syscall(SYS_write, fd, data, size);
}

ssize_t read(int fd, void* data, size_t size) {
  if (trap::is_hit()) return -1;
  return syscall(SYS_read, fd, data, size);
}

int fsync(int fd) { return trap::is_hit() ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }

int close(int fd) {
  const int result = static_cast<int>(syscall(SYS_close, fd));
  return trap::is_hit() ? -1 : result;
}

int fchmod(int fd, mode_t mode) noexcept {
  return trap::is_hit() ? -1 : static_cast<int>(syscall(SYS_fchmod, fd, mode));
}

int rename(const char* from, const char* to) noexcept {
  return trap::is_hit() ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}

int link(const char* from, const char* to) noexcept {
  return trap::is_hit() ? -1 : static_cast<int>(syscall(SYS_link, from, to));
}

int unlink(const char* path) noexcept { return trap::is_hit() ? -1 : static_cast<int>(syscall(SYS_unlink, path)); }

int mkdir(const char* path, mode_t mode) noexcept {
  return trap::is_hit() ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode));
}

int flock(int fd, int operation) noexcept {
  return trap::is_hit() ? -1 : static_cast<int>(syscall(SYS_flock, fd, operation));
}
}
