// SPDX-License-Identifier: Apache-2.0
// Launches of kernels, in place of the runtime's cudaLaunchKernelExC: the linker has all calls of that come here
// (--wrap). The runtime knows a kernel by a handle that is of no context, for which the driver looks up the function at
// each launch. This remembers the function.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/driver.h"

extern "C" {
cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments);
}

namespace sparsek::cuda {
namespace {

// A kernel's function, and of which context it is. A context is told by its number, which no later one has again; after
// cudaDeviceReset its address may come again, with other functions.
struct Known {
  const void* kernel;  // null: none yet
  unsigned long long context;
  CUfunction function;
};

// The last ones of this thread, each in the place that its address and context give it.
constexpr int kPlaceBits = 6;
thread_local Known known[1 << kPlaceBits];

// Null where there is none; then the runtime says why.
CUfunction function_of(const void* kernel) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  unsigned long long context = 0;
  if (driver().context_id(nullptr, &context) != CUDA_SUCCESS) return nullptr;
  Known& place = known[(reinterpret_cast<uintptr_t>(kernel) ^ context) * kGolden >> (64 - kPlaceBits)];
  if (place.kernel != kernel || place.context != context) {
    cudaFunction_t function = nullptr;
    if (cudaGetFuncBySymbol(&function, kernel) != cudaSuccess) {
      cudaGetLastError();
      return nullptr;
    }
    place = {kernel, context, function};
  }
  return place.function;
}

}  // namespace
}  // namespace sparsek::cuda

cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  using sparsek::cuda::driver;
  static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
  const bool has_driver = driver().launch != nullptr && driver().context_id != nullptr;
  const CUfunction function = has_driver ? sparsek::cuda::function_of(kernel) : nullptr;
  if (function == nullptr) return __real_cudaLaunchKernelExC(config, kernel, arguments);
  CUlaunchConfig of = {};
  of.gridDimX = config->gridDim.x;
  of.gridDimY = config->gridDim.y;
  of.gridDimZ = config->gridDim.z;
  of.blockDimX = config->blockDim.x;
  of.blockDimY = config->blockDim.y;
  of.blockDimZ = config->blockDim.z;
  of.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  of.hStream = config->stream;
  of.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  of.numAttrs = config->numAttrs;
  const CUresult result = driver().launch(&of, function, arguments, nullptr);
  // The stream is of another context than the current one: a handle of no context serves it.
  if (result == CUDA_ERROR_INVALID_HANDLE) return __real_cudaLaunchKernelExC(config, kernel, arguments);
  return static_cast<cudaError_t>(result);  // the runtime uses the driver's numbers
}
