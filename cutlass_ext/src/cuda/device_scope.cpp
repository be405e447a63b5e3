// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_scope.h"

#include <array>
#include <atomic>

#include "abi/error.h"
#include "abi/fork.h"
#include "cuda/cuda_error.h"
#include "cuda/driver.h"

namespace sparsek::cuda {
namespace {

constexpr int kUnused = -1;
std::atomic<int> used_in{kUnused};  // the fork count of the process in which CUDA was used first

// The contexts that cudaSetDevice made current, by device; null where it was not called.
std::array<std::atomic<CUcontext>, 64> contexts;

CUcontext current_context() {
  const auto ask = driver().current_context;
  CUcontext context = nullptr;
  return ask != nullptr && ask(&context) == CUDA_SUCCESS ? context : nullptr;
}

// Takes a tenth of the time of asking the runtime which device is current and making it current again.
bool is_current(int device) {
  if (static_cast<size_t>(device) >= contexts.size()) return false;
  const CUcontext known = contexts[static_cast<size_t>(device)].load(std::memory_order_relaxed);
  return known != nullptr && known == current_context();
}

void remember_current(int device) {
  if (static_cast<size_t>(device) >= contexts.size()) return;
  contexts[static_cast<size_t>(device)].store(current_context(), std::memory_order_relaxed);
}

}  // namespace

const char kCudaLost[] =
    "CUDA was in use when this process was forked, and works in the parent only: fork before the first use of the GPU, "
    "or start the child as a new program";

bool is_cuda_lost() noexcept {
  const int used = used_in.load(std::memory_order_relaxed);
  return used != kUnused && used != fork_count();
}

void use_cuda() {
  int unused = kUnused;
  used_in.compare_exchange_strong(unused, fork_count(), std::memory_order_relaxed);
  if (is_cuda_lost()) fail(SPARSEK_CUDA_ERROR, "%s", kCudaLost);
}

int exchange_capture_mode(int mode) noexcept {
  if (is_cuda_lost()) return mode;
  auto other = static_cast<cudaStreamCaptureMode>(mode);
  cudaThreadExchangeStreamCaptureMode(&other);
  return other;
}

DeviceScope::DeviceScope(int device) : device_(device) {
  use_cuda();
  if (is_current(device)) {
    previous_ = device;
    return;
  }
  check(cudaGetDevice(&previous_), "cudaGetDevice");
  // Also where it is current: on a thread of the operating system that has made no such call yet there is no context,
  // and calls of the driver, which encode the descriptors of bulk copies, would fail.
  check(cudaSetDevice(device_), "cudaSetDevice");
  remember_current(device_);
}

DeviceScope::~DeviceScope() {
  if (previous_ != device_) cudaSetDevice(previous_);
}

FinalDeviceScope::FinalDeviceScope(int device) noexcept : device_(device), previous_(device) {
  cudaGetDevice(&previous_);
  cudaSetDevice(device);
}

FinalDeviceScope::~FinalDeviceScope() {
  if (previous_ != device_) cudaSetDevice(previous_);
}

bool is_captured(cudaStream_t stream) {
  CUstreamCaptureStatus known = CU_STREAM_CAPTURE_STATUS_NONE;
  const auto ask = driver().stream_is_capturing;
  if (ask != nullptr && ask(stream, &known) == CUDA_SUCCESS) return known != CU_STREAM_CAPTURE_STATUS_NONE;
  // The runtime says why not, or knows the stream without a context.
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = cudaStreamIsCapturing(stream, &status);
  if (error == cudaErrorStreamCaptureImplicit) {
    cudaGetLastError();
    fail(SPARSEK_CUDA_ERROR,
         "the default stream cannot be used while a stream that waits for it is being captured into a graph: name a "
         "stream, or capture one that was made with cudaStreamNonBlocking");
  }
  check(error, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void require_not_captured(cudaStream_t stream, const char* what) {
  if (!is_captured(stream)) return;
  fail(SPARSEK_BAD_ARGUMENT, "%s would wait for a stream that is being captured into a graph: end the capture first",
       what);
}

}  // namespace sparsek::cuda
