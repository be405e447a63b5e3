// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

// The pitch of the copy of B in elements: rows begin at multiples of 16 bytes.
constexpr int64_t packed_pitch(int64_t n, int64_t element_bytes) {
  const int64_t vector = 16 / element_bytes;
  return (n + vector - 1) / vector * vector;
}

// Loads the kernel. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_pack_b();

// Copies from (rows, n):(pitch, 1) to `to` (rows, n):(packed_pitch(n, element_bytes), 1). Elements have 2 bytes or a
// multiple of that; `from` needs no further alignment, `to` is aligned to 16 bytes. Elements beyond column n of `to`
// are undefined.
cudaError_t pack_b(void* to, const void* from, int64_t pitch, int64_t rows, int64_t n, int64_t element_bytes,
                   cudaStream_t stream);

}  // namespace sparsek::cuda
