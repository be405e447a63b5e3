// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/cublas.h"
#include "cuda/vendor/cusparse.h"

namespace sparsek::cuda {

// Handles of one library that no context uses, for each device. They are never destroyed: that would wait for the
// device by cudaDeviceSynchronize, which spoils the capture of any stream into a graph. The next context of the device
// takes them. Thread-safe.
template <class Handle>
class SpareHandles {
 public:
  // Null where there is none.
  static std::unique_ptr<Handle> take(int device) {
    const std::lock_guard lock(store().mutex);
    const auto found = store().spare.find(device);
    if (found == store().spare.end() || found->second.empty()) return nullptr;
    std::unique_ptr<Handle> handle = std::move(found->second.back());
    found->second.pop_back();
    return handle;
  }
  static void keep(int device, std::unique_ptr<Handle> handle) noexcept {
    if (handle == nullptr) return;
    try {
      const std::lock_guard lock(store().mutex);
      std::vector<std::unique_ptr<Handle>>& spare = store().spare[device];
      spare.reserve(spare.size() + 1);
      spare.push_back(std::move(handle));
    } catch (...) {
      handle.release();  // lost, but not destroyed
    }
  }

 private:
  struct Store {
    std::mutex mutex;
    std::map<int, std::vector<std::unique_ptr<Handle>>> spare;
  };
  static Store& store() {
    static Store* const made = new Store;  // never destroyed, like what it holds
    return *made;
  }
};

// The handles of NVIDIA's libraries that a context uses on one device, each created at its first use.
class LibraryHandles {
 public:
  explicit LibraryHandles(int device) : device_(device) {}
  ~LibraryHandles() {
    SpareHandles<Cublas>::keep(device_, std::move(cublas_));
    SpareHandles<Cusparse>::keep(device_, std::move(cusparse_));
  }
  LibraryHandles(const LibraryHandles&) = delete;
  LibraryHandles& operator=(const LibraryHandles&) = delete;

  // The current device must be `device`. They throw SPARSEK_NO_LIBRARY where the library is not there.
  Cublas& cublas() {
    const std::lock_guard lock(mutex_);
    if (cublas_ == nullptr) cublas_ = SpareHandles<Cublas>::take(device_);
    if (cublas_ == nullptr) cublas_ = std::make_unique<Cublas>(device_);
    return *cublas_;
  }
  Cusparse& cusparse() {
    const std::lock_guard lock(mutex_);
    if (cusparse_ == nullptr) cusparse_ = SpareHandles<Cusparse>::take(device_);
    if (cusparse_ == nullptr) cusparse_ = std::make_unique<Cusparse>();
    return *cusparse_;
  }

 private:
  const int device_;
  std::mutex mutex_;
  std::unique_ptr<Cublas> cublas_;
  std::unique_ptr<Cusparse> cusparse_;
};

}  // namespace sparsek::cuda
