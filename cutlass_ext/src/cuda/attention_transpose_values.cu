// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_transpose_values.h"

#include <algorithm>

#include "cuda/launch.cuh"

namespace sparsek::cuda {
namespace {

constexpr int kKeys = 128;            // of a CTA
constexpr int kVectors = kKeys / 16;  // of a column's keys

// Bytes i of four words become word i.
__device__ void transpose_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t (&to)[4]) {
  const uint32_t ab[2] = {__byte_perm(a, b, 0x5140), __byte_perm(a, b, 0x7362)};
  const uint32_t cd[2] = {__byte_perm(c, d, 0x5140), __byte_perm(c, d, 0x7362)};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    to[2 * i] = __byte_perm(ab[i], cd[i], 0x5410);
    to[2 * i + 1] = __byte_perm(ab[i], cd[i], 0x7632);
  }
}

// A CTA has 128 keys of a head of up to so many columns. A thread reads 16 columns of the four keys of a word, writes a
// word of each column to shared memory, and from there vectors of 16 keys.
template <int Columns>
struct Kernel {
  static constexpr int kGroups = Columns / 16;
  static constexpr int kThreads = kKeys / 4 * kGroups;
  static constexpr int kWordsOfWarp = 32 / kGroups;

  // Vectors of a column lie in an order of its group of 16, so that a warp writes to all banks at once.
  static __device__ int place(int group, int vector) { return vector ^ group * (kVectors / kGroups); }

  static __device__ void run(const TransposeValuesArgs& args) {
    __shared__ alignas(16) uint32_t tile[Columns][kKeys / 4];
    const int64_t padded = transposed_keys(args.seq);
    const int tiles = int(padded / kKeys);
    const int first = blockIdx.x % tiles * kKeys, head = blockIdx.x / tiles;  // head: over all batches
    const int batch = head / args.heads;
    const int end = args.lengths == nullptr ? args.seq : min(max(__ldg(args.lengths + batch), 0), args.seq);
    if (first >= end) return;  // nobody reads it

    const int lane = threadIdx.x % 32;
    const int group = lane % kGroups, word = threadIdx.x / 32 * kWordsOfWarp + lane / kGroups;
    if (group * 16 < args.head_size) {
      const auto* const from = static_cast<const uint8_t*>(args.v) + batch * args.stride.batch +
                               head % args.heads * args.stride.head + group * 16;
      const int key = first + word / 4 * 16 + word % 4 * 2;
      uint4 of_key[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = key + j / 2 * 8 + j % 2;
        of_key[j] = at < end ? __ldg(reinterpret_cast<const uint4*>(from + at * args.stride.row)) : uint4{};
      }
      const auto write = [&](int column, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
        uint32_t words[4];
        transpose_bytes(a, b, c, d, words);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          tile[group * 16 + column + i][place(group, word / 4) * 4 + word % 4] = words[i];
        }
      };
      write(0, of_key[0].x, of_key[1].x, of_key[2].x, of_key[3].x);
      write(4, of_key[0].y, of_key[1].y, of_key[2].y, of_key[3].y);
      write(8, of_key[0].z, of_key[1].z, of_key[2].z, of_key[3].z);
      write(12, of_key[0].w, of_key[1].w, of_key[2].w, of_key[3].w);
    }
    __syncthreads();
    auto* const to = static_cast<uint8_t*>(args.to) + int64_t(head) * args.head_size * padded + first;
    for (int i = threadIdx.x; i < args.head_size * kVectors; i += kThreads) {
      const int column = i / kVectors, vector = i % kVectors;
      *reinterpret_cast<uint4*>(to + column * padded + vector * 16) =
          *reinterpret_cast<const uint4*>(&tile[column][place(column / 16, vector) * 4]);
    }
  }
};

template <int Columns>
__global__ void __launch_bounds__(Kernel<Columns>::kThreads)
    transpose_values_kernel(const __grid_constant__ TransposeValuesArgs args) {
  Kernel<Columns>::run(args);
}

template <int Columns>
cudaError_t launch(const TransposeValuesArgs& args, cudaStream_t stream) {
  const int64_t ctas = transposed_keys(args.seq) / kKeys * args.heads * args.batch;
  if (ctas == 0) return cudaSuccess;
  return launch_kernel(transpose_values_kernel<Columns>, static_cast<int>(ctas), Kernel<Columns>::kThreads, 0, stream,
                       {}, args);
}

}  // namespace

cudaError_t prepare_transpose_values() {
  cudaFuncAttributes loaded;
  const cudaError_t error = cudaFuncGetAttributes(&loaded, transpose_values_kernel<64>);
  return error != cudaSuccess ? error : cudaFuncGetAttributes(&loaded, transpose_values_kernel<128>);
}

cudaError_t transpose_values(const TransposeValuesArgs& args, cudaStream_t stream) {
  return args.head_size <= 64 ? launch<64>(args, stream) : launch<128>(args, stream);
}

}  // namespace sparsek::cuda
