// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>

#include "cuda/device_scope.h"

namespace sparsek::cuda {

// Where kernels have been loaded, which takes a while, and which a capture of a stream does not allow.
class Prepared {
 public:
  // Calls `prepare`, unless it has returned on that device before, which must be the current one.
  template <class Function>
  void on(int device, const Function& prepare) {
    std::atomic<bool>* const done = device < kDevices ? &done_[static_cast<size_t>(device)] : nullptr;
    if (done != nullptr && done->load(std::memory_order_acquire)) return;
    const RelaxedCapture relaxed;
    prepare();
    if (done != nullptr) done->store(true, std::memory_order_release);
  }

 private:
  static constexpr int kDevices = 64;
  std::array<std::atomic<bool>, kDevices> done_ = {};
};

}  // namespace sparsek::cuda
