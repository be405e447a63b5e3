// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sparsek::cuda {

// Waits for what the device has to do, and leaves streams alone that are being captured: cudaDeviceSynchronize would
// spoil their captures. An error is that of a product, and is told where its results are read.
void wait_for_device(int device) noexcept;

}  // namespace sparsek::cuda
