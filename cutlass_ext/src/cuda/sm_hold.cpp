// SPDX-License-Identifier: Apache-2.0
#include "cuda/sm_hold.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "cuda/cuda_error.h"
#include "cuda/device_scope.h"

namespace sparsek::cuda {
namespace {

using std::chrono::steady_clock;

// Reads a word that the device writes.
uint32_t read_word(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

// Streams share the device's queues, and a kernel may wait for what was put into its queue before it: a product for as
// long as SMs are held. The streams of the highest priority have queues of their own.
int highest_priority() {
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  return highest;
}

}  // namespace

HoldWords* HoldMemory::take() {
  const std::lock_guard lock(mutex_);
  const size_t bytes = sizeof(HoldWords) + static_cast<size_t>(sm_count_) * sizeof(uint32_t);
  if (memory_ == nullptr) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped), "cudaHostAlloc");
    memory_.reset(static_cast<HoldWords*>(memory));
  }
  if (is_taken_) fail(SPARSEK_BAD_ARGUMENT, "SMs are held already: release them first, or hold more at once");
  is_taken_ = true;
  std::memset(static_cast<void*>(memory_.get()), 0, bytes);
  return memory_.get();
}

void HoldMemory::give_back() noexcept {
  const std::lock_guard lock(mutex_);
  is_taken_ = false;
}

CudaSmHold::CudaSmHold(int device, HoldMemory& memory, int count, double seconds)
    : device_(device),
      count_(count),
      stream_(cudaStreamNonBlocking, highest_priority()),
      words_(nullptr, GiveBack{&memory}) {
  if (count >= memory.sm_count()) {
    fail(SPARSEK_BAD_SIZE, "count = %d: the GPU has %d SMs, and at least one must be left", count, memory.sm_count());
  }
  words_.reset(memory.take());
  void* on_device = nullptr;
  check(cudaHostGetDevicePointer(&on_device, words_.get(), 0), "cudaHostGetDevicePointer");
  check(launch_hold(count, static_cast<HoldWords*>(on_device), static_cast<int64_t>(seconds * 1e9), stream_),
        "launch of the kernel that holds SMs");
  try {
    wait_for_all(seconds);
  } catch (...) {
    stop();
    throw;
  }
}

CudaSmHold::~CudaSmHold() {
  const FinalDeviceScope scope(device_);
  stop();
}

void CudaSmHold::check_kernel() const {
  const cudaError_t error = cudaStreamQuery(stream_);
  if (error != cudaErrorNotReady) check(error, "kernel that holds SMs");
}

void CudaSmHold::wait_for_all(double seconds) const {
  const auto end = steady_clock::now() + std::chrono::duration<double>(seconds);
  std::set<uint32_t> sms;
  const auto is_late = [&] { return steady_clock::now() >= end || read_word(words_->expired) != 0; };
  const auto fail_late = [&] {
    fail(SPARSEK_CUDA_ERROR, "after %g s only %zu of %d SMs were held: wait for the other work on the GPU first",
         seconds, sms.size(), count_);
  };
  for (int cta = 0; cta < count_; ++cta) {
    uint32_t word = 0;
    while ((word = read_word(cta_words()[cta])) == 0) {
      check_kernel();
      if (is_late()) fail_late();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (word == kHoldEnded) fail_late();
    if (sms.insert(word).second) continue;
    // A CTA whose time is over makes room on its SM for one that found none before.
    if (is_late()) fail_late();
    fail(SPARSEK_INTERNAL, "two CTAs of the kernel that holds SMs run on SM %u", word - 1);
  }
}

// Not cudaStreamSynchronize: it would wait for the holds of other contexts in the same queue.
void CudaSmHold::stop() {
  if (stopped_) return;
  stopped_ = true;
  __atomic_store_n(&words_->stop, 1, __ATOMIC_RELEASE);
  for (int cta = 0; cta < count_; ++cta) {
    while (read_word(cta_words()[cta]) != kHoldEnded) {
      const cudaError_t error = cudaStreamQuery(stream_);
      if (error != cudaErrorNotReady && error != cudaSuccess) return;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

bool CudaSmHold::release() {
  const DeviceScope scope(device_);
  stop();
  check_kernel();
  return read_word(words_->expired) != 0;
}

}  // namespace sparsek::cuda
