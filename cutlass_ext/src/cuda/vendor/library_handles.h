// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "cuda/cublas.h"
#include "cuda/vendor/cusparse.h"

namespace sparsek::cuda {

// The handles of NVIDIA's libraries on one device, each created at its first use.
class LibraryHandles {
 public:
  explicit LibraryHandles(int device) : device_(device) {}

  // The current device must be `device`. They throw SPARSEK_NO_LIBRARY where the library is not there.
  Cublas& cublas() {
    const std::lock_guard lock(mutex_);
    if (cublas_ == nullptr) cublas_ = std::make_unique<Cublas>(device_);
    return *cublas_;
  }
  Cusparse& cusparse() {
    const std::lock_guard lock(mutex_);
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
