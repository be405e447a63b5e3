// SPDX-License-Identifier: Apache-2.0
// A kernel that does nothing but occupy SMs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

// What the host and the kernel share, in pinned memory that is mapped into the device. It is followed by a word for
// each CTA: 0; from its first instruction on 1 + the number of its SM; and with its last one kHoldEnded.
struct HoldWords {
  uint32_t stop;     // written by the host: not 0 ends the kernel
  uint32_t expired;  // not 0: a CTA ended because the time had passed
};

constexpr uint32_t kHoldEnded = UINT32_MAX;

// One CTA an SM: each takes all shared memory that a CTA of the current device may have. Each ends `nanoseconds` after
// it began at the latest. The words are at their address on the device and were set to 0.
cudaError_t launch_hold(int ctas, HoldWords* words, int64_t nanoseconds, cudaStream_t stream);

}  // namespace sparsek::cuda
