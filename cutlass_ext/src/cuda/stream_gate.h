// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {

// Holds a stream back until the gate is opened or destroyed, or for kLongest. Work that is enqueued behind it meanwhile
// then runs without gaps, however slow the host was: events between that work measure the device alone.
class StreamGate {
 public:
  explicit StreamGate(cudaStream_t stream) : state_(std::make_shared<State>()) {
    auto held = std::make_unique<std::shared_ptr<State>>(state_);  // the callback may outlive this
    check(cudaLaunchHostFunc(stream, &wait, held.get()), "cudaLaunchHostFunc");
    held.release();
  }
  ~StreamGate() { open(); }
  StreamGate(const StreamGate&) = delete;
  StreamGate& operator=(const StreamGate&) = delete;

  void open() {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->open = true;
    state_->opened.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
  };
  // A library's call may wait for the device before it returns; without a limit it would wait for ever.
  static constexpr std::chrono::milliseconds kLongest{10};

  static void CUDART_CB wait(void* held) {
    const std::unique_ptr<std::shared_ptr<State>> owner(static_cast<std::shared_ptr<State>*>(held));
    State& state = **owner;
    std::unique_lock<std::mutex> lock(state.mutex);
    state.opened.wait_for(lock, kLongest, [&] { return state.open; });
  }

  std::shared_ptr<State> state_;
};

}  // namespace sparsek::cuda
