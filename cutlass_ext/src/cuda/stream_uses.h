// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace sparsek::cuda {

// A stream in which something was used.
struct StreamUse {
  enum class Kind {
    kDefault,  // the legacy default stream, which is always there
    kOwn,      // made by the library, which knows whether it still exists
    kForeign,  // made by the application, which may have destroyed it meanwhile
  };
  unsigned long long id;  // of cudaStreamGetId: no other stream of the process ever has it, as it may have the handle
  cudaStream_t stream;
  Kind kind;
};

// The streams that hold uses of some device memory: what must end before the memory is another's. For several threads
// at once. Its address is kept by what it is the record of.
class StreamUses {
 public:
  StreamUses() = default;
  StreamUses(const StreamUses&) = delete;
  StreamUses& operator=(const StreamUses&) = delete;

  // Whether the stream was the last that was added, at the same `time`: the usual case, without a lock.
  bool is_last(cudaStream_t stream, unsigned long long time) const {
    return time_.load(std::memory_order_acquire) == time && last_.load(std::memory_order_relaxed) == stream;
  }
  // Throws std::bad_alloc.
  void add(const StreamUse& use, unsigned long long time) {
    const std::lock_guard lock(mutex_);
    insert(use);
    time_.store(0, std::memory_order_relaxed);  // neither pair for one who reads in between
    last_.store(use.stream, std::memory_order_release);
    time_.store(time, std::memory_order_release);
  }
  // All that another has, and what was last added to it, for a new record.
  void begin_as(const StreamUses& other) {
    const std::lock_guard lock(other.mutex_);
    streams_ = other.streams_;
    anywhere_ = other.is_anywhere();
    last_ = other.last_.load();
    time_ = other.time_.load();
  }
  // All that another has. Where there is no memory for the list, any stream may hold a use.
  void add_all(const StreamUses& other) noexcept {
    if (other.is_anywhere()) set_anywhere();
    try {
      const std::vector<StreamUse> list = other.list();
      const std::lock_guard lock(mutex_);
      for (const StreamUse& use : list) insert(use);
    } catch (...) {
      set_anywhere();
    }
  }
  // Any stream may hold a use: it was captured into a graph, which may run in each of them.
  void set_anywhere() noexcept { anywhere_ = true; }
  // All of them end before what this stream gets from now on. No more are added.
  void end_in(cudaStream_t stream) {
    ends_ = true;
    end_ = stream;
  }
  // Whether there is such a stream, which still exists: then sets `stream` to it.
  bool ends_in(cudaStream_t& stream) const {
    if (!ends_ || is_anywhere()) return false;
    stream = end_;
    return true;
  }

  bool is_anywhere() const { return anywhere_; }
  bool none() const {
    const std::lock_guard lock(mutex_);
    return streams_.empty() && !anywhere_;
  }
  // Throws std::bad_alloc.
  std::vector<StreamUse> list() const {
    const std::lock_guard lock(mutex_);
    return streams_;
  }

 private:
  // Of an application that makes a stream for each product.
  static constexpr size_t kMost = 256;

  void insert(const StreamUse& use) {
    for (const StreamUse& known : streams_) {
      if (known.id == use.id) return;
    }
    if (streams_.size() >= kMost) return set_anywhere();
    streams_.push_back(use);
  }

  std::atomic<cudaStream_t> last_{nullptr};
  std::atomic<unsigned long long> time_{0};  // 0: there is none
  std::atomic<bool> anywhere_{false};
  mutable std::mutex mutex_;  // of what follows
  std::vector<StreamUse> streams_;
  bool ends_ = false;
  cudaStream_t end_ = nullptr;
};

}  // namespace sparsek::cuda
