// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace sparsek::cuda {

// For the scope, lets this thread allocate, free and wait while any stream is being captured into a graph, by this
// thread or another, without spoiling that capture. Right for memory and work that are no part of the graph. All calls
// of the library are within such a scope (abi/guard.h), but for those that enqueue products. What CUDA forbids even
// then is used nowhere: cudaDeviceSynchronize, and the default stream where the caller did not name it.
class RelaxedCapture {
 public:
  RelaxedCapture() { is_set_ = cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess; }
  ~RelaxedCapture() {
    if (is_set_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool is_set_;
};

// What abi/guard.h is given.
int exchange_capture_mode(int mode) noexcept;

// Whether this process is a fork of one in which the library used CUDA, which then works in neither the driver nor the
// runtime: nothing of CUDA is to be called any more.
bool is_cuda_lost() noexcept;
extern const char kCudaLost[];  // says so to users
// To be called where CUDA is first used. Throws SPARSEK_CUDA_ERROR where it is lost.
void use_cuda();

// Makes a device current for the scope.
class DeviceScope {
 public:
  // Throws Error where the device cannot be made current, or CUDA is lost.
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int device_, previous_ = 0;
};

// The same for destructors, which cannot report an error: whatever they call then fails by itself.
class FinalDeviceScope {
 public:
  explicit FinalDeviceScope(int device) noexcept;
  ~FinalDeviceScope();
  FinalDeviceScope(const FinalDeviceScope&) = delete;
  FinalDeviceScope& operator=(const FinalDeviceScope&) = delete;

 private:
  int device_, previous_;
};

// Whether the stream is being captured. Throws SPARSEK_CUDA_ERROR for the default stream while a stream that waits for
// it is being captured: CUDA forbids its use then, and trying would spoil the capture.
bool is_captured(cudaStream_t stream);

// Throws SPARSEK_BAD_ARGUMENT where the stream is being captured: nothing can wait for a part of a graph. `what` is the
// call that would.
void require_not_captured(cudaStream_t stream, const char* what);

}  // namespace sparsek::cuda
