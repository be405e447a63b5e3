// SPDX-License-Identifier: Apache-2.0
#include "tune/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "abi/error.h"

namespace sparsek::tune {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause(1);

// The previous holder may have removed the file after it was opened here: a lock on a removed file excludes nobody.
bool is_current(const Descriptor& file, const std::string& path) {
  struct stat held, there;
  return fstat(file.get(), &held) == 0 && stat(path.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

}  // namespace

FileLock::FileLock(const std::string& path, std::chrono::milliseconds patience) : path_(path) {
  const Clock::time_point end = Clock::now() + patience;
  for (;; std::this_thread::sleep_for(kPause)) {
    // Opened each time: the one before may have been removed, and stay locked by a child that was forked meanwhile.
    file_ = open_file(path_, O_RDONLY | O_CREAT | O_NOFOLLOW, 0666);
    if (!file_.is_open()) fail_io(path_, "making the lock", errno);
    if (flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_current(file_, path_)) return;
      continue;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) fail_io(path_, "locking", errno);
    if (Clock::now() >= end) {
      fail(SPARSEK_IO_ERROR, "%s: another process has held the lock for %d ms: see which, and end it", path_.c_str(),
           static_cast<int>(patience.count()));
    }
  }
}

FileLock::~FileLock() {
  unlink(path_.c_str());
  // A child that was forked meanwhile has the file open too: closing it here would leave the lock with the child.
  flock(file_.get(), LOCK_UN);
}

}  // namespace sparsek::tune
