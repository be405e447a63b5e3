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

namespace {

// Of NVIDIA's drivers, the first that serves this library's CUDA runtime, whose functions are those of its major
// version.
static_assert(CUDART_VERSION / 1000 == 13, "name the first driver for another CUDA");
constexpr int kOldestServed = 13;
constexpr char kOldestDriver[] = "580";

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

NoDevice explain(cudaError_t error) {
  if (error == cudaSuccess || error == cudaErrorNoDevice) return {"the CUDA driver shows no GPU", false};
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
  if (error != cudaErrorInsufficientDriver) {
    const char* const hint =
        error == cudaErrorInitializationError ? " (CUDA does not work in a process that was forked after its use)" : "";
    return {std::string("CUDA does not start: ") + cudaGetErrorString(error) + hint, true};
  }
  if (driver == 0) return {"no CUDA driver (libcuda.so.1 not found)", false};
  return {"the NVIDIA driver serves CUDA " + version_text(driver) + " at most, and this library needs CUDA " +
              std::to_string(kOldestServed) + ".0: update the driver to " + kOldestDriver + " or newer",
          true};
}

}  // namespace

int cuda_device_count(NoDevice* out) {
  if (cuda::is_cuda_lost()) {
    if (out != nullptr) *out = {cuda::kCudaLost, true};
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
  if (out != nullptr) *out = explain(error);
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
