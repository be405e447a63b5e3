// SPDX-License-Identifier: Apache-2.0
#include "tune/tuning_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "abi/error.h"
#include "tune/cache_path.h"
#include "tune/file_lock.h"
#include "tune/utc_time.h"
#include "tune/word.h"

namespace sparsek::tune {
namespace {

// Far more than kMost records need: a larger file is not a tuning file.
constexpr size_t kLargestFile = size_t{64} << 20;

TuningContent faulty(TuningState state, const std::string& fault) {
  TuningContent content;
  content.state = state;
  content.fault = fault;
  return content;
}

TuningContent read_content(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return faulty(TuningState::kUnreadable, std::generic_category().message(errno));
  }
  // Device files are not even opened, as that may have effects. None of these is ever renamed.
  if (S_ISDIR(status.st_mode)) return faulty(TuningState::kUnreadable, "it is a folder: name a file in it");
  if (!S_ISREG(status.st_mode)) return faulty(TuningState::kUnreadable, "it is no ordinary file");
  const Descriptor file = open_file(path, O_RDONLY);
  if (!file.is_open()) {
    const int code = errno;
    if (code == ENOENT) return {};
    // A missing permission is permanent; a lack of memory or descriptors, or a disk error, may be temporary.
    const bool is_forbidden = code == EACCES || code == EPERM;
    return faulty(is_forbidden ? TuningState::kForeign : TuningState::kUnreadable,
                  "it cannot be opened: " + std::generic_category().message(code));
  }
  std::string text;
  const int code = read_all(file, kLargestFile + 1, text);
  if (code != 0) {
    return faulty(TuningState::kUnreadable, "it cannot be read: " + std::generic_category().message(code));
  }
  if (text.size() > kLargestFile) return faulty(TuningState::kForeign, "it is too large");
  return parse_tuning_text(text);
}

// The target of a chain of symbolic links: the target is written, and the links stay.
std::string resolve(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  if (real == nullptr) fail_io(path, "following the link", errno);
  return real.get();
}

std::string set_aside_name(const std::string& path) {
  const std::string first = path + ".set-aside-" + format_time(now());
  std::string name = first;
  struct stat status;
  for (int64_t n = 2; lstat(name.c_str(), &status) == 0; ++n) name = first + '-' + number_word(n);
  return name;
}

// Gives the file a second name by a hard link, so that the first name always exists. Where the file system has no hard
// links, the file is renamed.
std::string set_aside(const std::string& path) {
  const std::string name = set_aside_name(path);
  if (link(path.c_str(), name.c_str()) != 0 && rename(path.c_str(), name.c_str()) != 0) {
    fail_io(path, "setting it aside", errno);
  }
  return name;
}

// Beyond that limit a write would end the process (SIGXFSZ) instead of failing.
void require_size_allowed(const std::string& path, size_t size) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur) {
    fail_io(path, "writing", EFBIG);
  }
}

// A file that is removed unless it was renamed.
class NewFile {
 public:
  // A writer that was killed may have left one. The lock is held, so no other process writes it now.
  explicit NewFile(const std::string& path) : path_(path + ".new") {
    unlink(path_.c_str());
    file_ = open_file(path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (!file_.is_open()) fail_io(path_, "making the new file", errno);
  }
  ~NewFile() {
    if (!renamed_) unlink(path_.c_str());
  }

  void write(std::string_view text) {
    require_size_allowed(path_, text.size());
    if (const int code = write_all(file_, text)) fail_io(path_, "writing", code);
    if (fsync(file_.get()) != 0) fail_io(path_, "writing", errno);
    if (close(file_.release()) != 0) fail_io(path_, "writing", errno);
  }
  void keep_mode(const std::string& old) {
    struct stat status;
    if (stat(old.c_str(), &status) == 0) fchmod(file_.get(), status.st_mode & 0777);
  }
  void rename_to(const std::string& path) {
    if (rename(path_.c_str(), path.c_str()) != 0) fail_io(path, "replacing it", errno);
    renamed_ = true;
  }

 private:
  std::string path_;
  Descriptor file_;
  bool renamed_ = false;
};

std::string set_aside_warning(const TuningContent& content, const std::string& aside) {
  return content.fault + ": it is now " + aside;
}

// Throws unless the file may be replaced.
void require_replaceable(const TuningContent& content, Target target) {
  const bool is_good = content.state == TuningState::kAbsent || content.state == TuningState::kWhole;
  if (!is_good && (target == Target::kFile || content.state == TuningState::kUnreadable)) {
    fail(SPARSEK_IO_ERROR, "%s; it is left as it is", content.fault.c_str());
  }
}

bool has_fault(const TuningContent& content) { return !content.fault.empty(); }

// Runs a writer's work; adds to an error about the user's cache how to do without it.
template <class Work>
std::string with_mend(Target target, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (target == Target::kFile) throw;
    throw Error(error.status(), std::string(error.what()) + " (" + kCacheVariable +
                                    "=FILE keeps measurements elsewhere, " + kCacheVariable + "=off keeps none)");
  }
}

}  // namespace

bool operator==(const FileStamp& a, const FileStamp& b) {
  return a.modified_ns == b.modified_ns && a.size == b.size && a.inode == b.inode;
}

FileStamp stamp_of(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec * int64_t{1000000000} + status.st_mtim.tv_nsec, status.st_size, status.st_ino};
}

TuningContent read_tuning_file(const std::string& path) {
  TuningContent content = read_content(path);
  if (has_fault(content)) content.fault = path + ": " + content.fault;
  return content;
}

std::string update_tuning_file(const std::string& given, Target target,
                               const std::function<bool(TuningRecords&)>& change) {
  return with_mend(target, [&]() -> std::string {
    const std::string path = resolve(given);
    if (target == Target::kCache) make_folders(folder_of(path));
    const FileLock lock(path + ".lock");
    TuningContent content = read_tuning_file(path);
    require_replaceable(content, target);
    if (!change(content.records) && !has_fault(content)) return "";
    content.records.drop_oldest();
    NewFile file(path);
    if (!has_fault(content)) file.keep_mode(path);
    file.write(tuning_text(content.records));
    const std::string warning = has_fault(content) ? set_aside_warning(content, set_aside(path)) : "";
    file.rename_to(path);
    sync_folder(folder_of(path));
    return warning;
  });
}

std::string remove_tuning_file(const std::string& given, Target target, int64_t& records) {
  return with_mend(target, [&]() -> std::string {
    records = 0;
    const std::string path = resolve(given);
    struct stat status;
    if (lstat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) return "";
    const FileLock lock(path + ".lock");
    const TuningContent content = read_tuning_file(path);
    require_replaceable(content, target);
    const std::string warning = has_fault(content) ? set_aside_warning(content, set_aside(path)) : "";
    if (unlink(path.c_str()) != 0 && errno != ENOENT) fail_io(path, "removing", errno);
    sync_folder(folder_of(path));
    records = static_cast<int64_t>(content.records.size());
    return warning;
  });
}

}  // namespace sparsek::tune
