// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_scope.h"

#include "abi/error.h"
#include "cuda/cuda_error.h"

namespace sparsek::cuda {

int exchange_capture_mode(int mode) noexcept {
  auto other = static_cast<cudaStreamCaptureMode>(mode);
  cudaThreadExchangeStreamCaptureMode(&other);
  return other;
}

DeviceScope::DeviceScope(int device) : device_(device) {
  check(cudaGetDevice(&previous_), "cudaGetDevice");
  // Also where it is current: on a thread of the operating system that has made no such call yet there is no context,
  // and calls of the driver, which encode the descriptors of bulk copies, would fail.
  check(cudaSetDevice(device_), "cudaSetDevice");
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
