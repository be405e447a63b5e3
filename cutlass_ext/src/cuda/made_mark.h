// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>

#include "cuda/device_scope.h"
#include "cuda/event_pool.h"

namespace sparsek::cuda {

// Marks in a stream the end of the work that makes something, so that what uses it elsewhere comes behind that. A
// kernel in the same stream cannot begin early then either, before what it reads is written (dependent_launch.cuh). For
// several threads at once, but for two that record.
class MadeMark {
 public:
  MadeMark() = default;
  ~MadeMark() {
    if (event_ != nullptr) pool_->give_back(event_);
  }
  MadeMark(const MadeMark&) = delete;
  MadeMark& operator=(const MadeMark&) = delete;

  // Behind what the stream holds, which is not being captured.
  void record(EventPool& pool, cudaStream_t stream) {
    if (event_ == nullptr) {
      pool_ = &pool;
      event_ = pool.take();
    }
    check(cudaEventRecord(event_, stream), "cudaEventRecord");
    stream_ = stream;
    recorded_.fetch_add(1, std::memory_order_release);
  }

  // Before something that uses it is put into the stream. Within a capture nothing can wait for what is outside of it,
  // so this thread waits.
  void order(cudaStream_t stream, bool captured) const {
    if (!is_pending() || (stream == stream_ && !captured && stream != cudaStreamPerThread)) return;
    if (captured) return wait();
    if (is_done()) return;
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
  }
  void wait() const {
    if (!is_pending()) return;
    const RelaxedCapture relaxed;
    const unsigned now = recorded_.load(std::memory_order_acquire);
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    done_.store(now, std::memory_order_release);
  }
  // Whether the work has ended.
  bool is_done() const {
    if (!is_pending()) return true;
    const RelaxedCapture relaxed;
    const unsigned now = recorded_.load(std::memory_order_acquire);
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaErrorNotReady) return false;
    check(error, "cudaEventQuery");
    done_.store(now, std::memory_order_release);
    return true;
  }

 private:
  bool is_pending() const { return recorded_.load(std::memory_order_acquire) != done_.load(std::memory_order_relaxed); }

  EventPool* pool_ = nullptr;
  cudaEvent_t event_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::atomic<unsigned> recorded_{0};      // times that it was
  mutable std::atomic<unsigned> done_{0};  // the last of them that is known to have been reached
};

}  // namespace sparsek::cuda
