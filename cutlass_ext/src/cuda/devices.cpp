// SPDX-License-Identifier: Apache-2.0
// Which CUDA devices there are, and which of them the kernels run on.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "abi/backend.h"
#include "abi/error.h"
#include "cuda/cuda_error.h"
#include "cuda/device_scope.h"

namespace sparsek {

int cuda_device_count(std::string* why) {
  if (cuda::is_cuda_lost()) {
    if (why != nullptr) *why = cuda::kCudaLost;
    return 0;
  }
  const cuda::RelaxedCapture relaxed;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) {
    cuda::use_cuda();
    return count;
  }
  cudaGetLastError();
  if (why != nullptr) {
    if (error == cudaErrorInsufficientDriver) {
      int driver = 0;
      cudaDriverGetVersion(&driver);
      *why = driver == 0 ? "no CUDA driver (libcuda.so.1 not found)"
                         : "the CUDA driver is older than this library's CUDA runtime";
    } else {
      *why = error == cudaSuccess ? "the CUDA driver shows no GPU" : cudaGetErrorString(error);
    }
  }
  return 0;
}

void cuda_device_info(int device, sparsek_device_info& out) {
  const cuda::RelaxedCapture relaxed;
  cudaDeviceProp properties;
  cuda::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  std::snprintf(out.name, sizeof(out.name), "%s", properties.name);
  out.compute_major = properties.major;
  out.compute_minor = properties.minor;
  out.sm_count = properties.multiProcessorCount;
  out.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  out.l2_bytes = properties.l2CacheSize;
  cuda::check(cudaDriverGetVersion(&out.driver_version), "cudaDriverGetVersion");
  int kilohertz = 0;
  if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device) != cudaSuccess) cudaGetLastError();
  out.clock_hz = int64_t{kilohertz} * 1000;
  out.usable = properties.major == 9 && properties.minor == 0;  // sm_90a code runs on nothing else
}

}  // namespace sparsek
