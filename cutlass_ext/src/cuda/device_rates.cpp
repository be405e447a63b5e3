// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_rates.h"

#include <cuda_runtime_api.h>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {
namespace {

// 0 where the driver does not report it.
double attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value;
  cudaGetLastError();
  return 0;
}

double known(double value, double otherwise) { return value > 0 ? value : otherwise; }

}  // namespace

DeviceRates device_rates(int device) {
  DeviceRates rates = {};
  check(cudaDeviceGetAttribute(&rates.sm_count, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  constexpr double kKilohertz = 1e3, kBitsOfByte = 8, kTransfersOfClock = 2;
  rates.sm_clock = known(attribute(cudaDevAttrClockRate, device) * kKilohertz, 1.98e9);
  rates.memory_rate = known(attribute(cudaDevAttrMemoryClockRate, device) * kKilohertz * kTransfersOfClock *
                                attribute(cudaDevAttrGlobalMemoryBusWidth, device) / kBitsOfByte,
                            3.35e12);
  rates.l2_bytes = known(attribute(cudaDevAttrL2CacheSize, device), 50e6);
  return rates;
}

}  // namespace sparsek::cuda
