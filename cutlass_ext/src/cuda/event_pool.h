// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <mutex>
#include <vector>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {

// Events without timing, which are used again: making one takes longer than recording it. For several threads at once.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool() {
    for (cudaEvent_t event : free_) cudaEventDestroy(event);
  }
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  cudaEvent_t take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        const cudaEvent_t event = free_.back();
        free_.pop_back();
        return event;
      }
    }
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    return event;
  }
  void give_back(cudaEvent_t event) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      free_.push_back(event);
    } catch (...) {  // no memory for the list
      cudaEventDestroy(event);
    }
  }

 private:
  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
};

}  // namespace sparsek::cuda
