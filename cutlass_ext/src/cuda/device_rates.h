// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sparsek::cuda {

// What the times of products on a device depend on.
struct DeviceRates {
  int sm_count;
  double sm_clock;     // Hz, the highest
  double memory_rate;  // bytes a second that the device memory's clock and bus allow
  double l2_bytes;
};

// Of a CUDA device. Throws Error where the device cannot be asked; what the driver does not report is taken from the
// H100 SXM.
DeviceRates device_rates(int device);

}  // namespace sparsek::cuda
