// SPDX-License-Identifier: Apache-2.0
#include "cuda/pack_b.h"

#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostCtas = 132 * 16;

}  // namespace

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace packing {

// Each thread writes 16 bytes at a time.
__global__ void __launch_bounds__(kThreads)
    pack_kernel(uint4* to, const uint16_t* from, int64_t pitch, int64_t n, int64_t vectors_in_row, int64_t vectors) {
  wait_for_previous_launch();
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < vectors; i += gridDim.x * int64_t{kThreads}) {
    const int64_t row = i / vectors_in_row, col = i % vectors_in_row * 8;
    const uint16_t* const source = from + row * pitch + col;
    uint32_t words[4] = {};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (col + j < n) words[j / 2] |= static_cast<uint32_t>(source[j]) << j % 2 * 16;
    }
    to[i] = {words[0], words[1], words[2], words[3]};
  }
}

}  // namespace packing

cudaError_t prepare_pack_b() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, packing::pack_kernel);
}

cudaError_t pack_b(void* to, const void* from, int64_t pitch, int64_t rows, int64_t n, int64_t element_bytes,
                   cudaStream_t stream) {
  const int64_t words = element_bytes / 2;  // of an element
  const int64_t vectors_in_row = packed_pitch(n * words, 2) / 8, vectors = rows * vectors_in_row;
  if (vectors == 0) return cudaSuccess;
  const int64_t ctas = std::min(kMostCtas, (vectors + kThreads - 1) / kThreads);
  return launch_kernel(packing::pack_kernel, static_cast<int>(ctas), kThreads, 0, stream, {/*overlap=*/true},
                       static_cast<uint4*>(to), static_cast<const uint16_t*>(from), pitch * words, n * words,
                       vectors_in_row, vectors);
}

}  // namespace sparsek::cuda
