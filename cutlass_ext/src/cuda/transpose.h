// SPDX-License-Identifier: Apache-2.0
// Copies of matrices in the other order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

// Matrices whose elements have 2, 4 or 8 bytes: element (i, j) of matrix b lies at b * step + i * ld + j.
struct MatrixLines {
  int64_t step, ld;
};

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_transpose();

// to (count, length, lines) = the transposes of from (count, lines, length). from.ld may be 0: all lines are one.
cudaError_t transpose(void* to, MatrixLines to_at, const void* from, MatrixLines from_at, int64_t count, int64_t lines,
                      int64_t length, int64_t element_bytes, cudaStream_t stream);

}  // namespace sparsek::cuda
