// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

// The pitch of B, in 16-bit elements, as pack_b writes it: rows begin at multiples of 16 bytes.
constexpr int64_t packed_pitch(int64_t n) { return (n + 7) / 8 * 8; }

// Before the first launch on a device: loads the kernel, which a capture would not allow.
cudaError_t prepare_pack_b();

// to (rows, n):(packed_pitch(n), 1) = from (rows, n):(pitch, 1), elements of 16 bits, wherever they lie; to is aligned
// to 16 bytes. What is behind a row of to gets any value.
cudaError_t pack_b(void* to, const void* from, int64_t pitch, int64_t rows, int64_t n, cudaStream_t stream);

}  // namespace sparsek::cuda
