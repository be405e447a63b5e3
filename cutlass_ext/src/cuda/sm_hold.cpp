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

}  // namespace

CudaSmHold::CudaSmHold(int device, int sm_count, int count, double seconds) : device_(device) {
  if (count >= sm_count) {
    fail(SPARSEK_BAD_SIZE, "count = %d: the GPU has %d SMs, and at least one must be left", count, sm_count);
  }
  const size_t bytes = sizeof(HoldWords) + static_cast<size_t>(count) * sizeof(uint32_t);
  void *words = nullptr, *on_device = nullptr;
  check(cudaHostAlloc(&words, bytes, cudaHostAllocMapped), "cudaHostAlloc");
  words_.reset(static_cast<HoldWords*>(words));
  std::memset(words, 0, bytes);
  check(cudaHostGetDevicePointer(&on_device, words, 0), "cudaHostGetDevicePointer");
  check(launch_hold(count, static_cast<HoldWords*>(on_device), static_cast<int64_t>(seconds * 1e9), stream_),
        "launch of the kernel that holds SMs");
  try {
    wait_for_all(count, seconds);
  } catch (...) {
    stop();
    throw;
  }
}

CudaSmHold::~CudaSmHold() {
  const FinalDeviceScope scope(device_);
  stop();
}

void CudaSmHold::wait_for_all(int count, double seconds) const {
  const auto end = steady_clock::now() + std::chrono::duration<double>(seconds);
  const auto* const began = reinterpret_cast<const uint32_t*>(words_.get() + 1);
  std::set<uint32_t> sms;
  for (int cta = 0; cta < count; ++cta) {
    uint32_t word = 0;
    while ((word = read_word(began[cta])) == 0) {
      const cudaError_t error = cudaStreamQuery(stream_);
      if (error != cudaErrorNotReady && error != cudaSuccess) check(error, "kernel that holds SMs");
      if (steady_clock::now() >= end) {
        fail(SPARSEK_CUDA_ERROR, "after %g s only %d of %d SMs were held: wait for the other work on the GPU first",
             seconds, cta, count);
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (!sms.insert(word).second) {
      fail(SPARSEK_INTERNAL, "two CTAs of the kernel that holds SMs run on SM %u", word - 1);
    }
  }
}

void CudaSmHold::stop() {
  if (stopped_) return;
  stopped_ = true;
  __atomic_store_n(&words_->stop, 1, __ATOMIC_RELEASE);
  cudaStreamSynchronize(stream_);
}

bool CudaSmHold::release() {
  const DeviceScope scope(device_);
  stop();
  check(cudaStreamQuery(stream_), "kernel that holds SMs");
  return read_word(words_->expired) != 0;
}

}  // namespace sparsek::cuda
