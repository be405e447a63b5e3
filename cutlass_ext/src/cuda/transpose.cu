// SPDX-License-Identifier: Apache-2.0
#include "cuda/transpose.h"

#include <algorithm>

#include "cuda/launch.cuh"

namespace sparsek::cuda {
// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace transposing {

constexpr int kThreads = 128;
constexpr int64_t kMostCtas = 132 * 16;
constexpr int64_t kSmallMatrix = 16 * 16;  // elements
constexpr int kVectors = 8;                // of 16 bytes in a row of a tile

struct Extents {
  int64_t count, lines, length;
};

template <class T>
constexpr int kOfVector = 16 / sizeof(T);
template <class T>
constexpr int kTile = kVectors * kOfVector<T>;  // rows, and columns

// The tile of a matrix that a CTA copies in a turn.
struct Place {
  int64_t matrix, line, col;

  __device__ Place(const Extents& of, int64_t turn, int tile) {
    const int64_t across = (of.length + tile - 1) / tile, tiles = (of.lines + tile - 1) / tile * across;
    matrix = turn / tiles;
    line = turn % tiles / across * tile;
    col = turn % across * tile;
  }
};

// Through shared memory, where vector v of row r is at v ^ (r / kOfVector): so neither the vectors that are written
// there nor the elements that are read, of one column by each thread, lie in the same banks. All rows begin at
// multiples of 16 bytes, and consist of whole vectors, in both orders.
template <class T>
__global__ void __launch_bounds__(kThreads)
    vectors(T* to, MatrixLines to_at, const T* from, MatrixLines from_at, Extents of, int64_t turns) {
  constexpr int kE = kOfVector<T>, kRows = kTile<T>;
  __shared__ __align__(16) T tile[kRows][kVectors * kE];
  for (int64_t turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const Place at(of, turn, kRows);
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < kRows * kVectors; i += kThreads) {
      const int r = i / kVectors, v = i % kVectors;
      if (at.line + r >= of.lines || at.col + v * kE >= of.length) continue;
      const T* const source = from + at.matrix * from_at.step + (at.line + r) * from_at.ld + at.col + v * kE;
      *reinterpret_cast<uint4*>(&tile[r][(v ^ (r / kE)) * kE]) = __ldg(reinterpret_cast<const uint4*>(source));
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < kRows * kVectors; i += kThreads) {
      const int c = i / kVectors, v = i % kVectors;
      if (at.col + c >= of.length || at.line + v * kE >= of.lines) continue;
      union {
        uint4 whole;
        T element[kE];
      } vector;
#pragma unroll
      for (int e = 0; e < kE; ++e) vector.element[e] = tile[v * kE + e][(c / kE ^ v) * kE + c % kE];
      *reinterpret_cast<uint4*>(to + at.matrix * to_at.step + (at.col + c) * to_at.ld + at.line + v * kE) =
          vector.whole;
    }
  }
}

// The same for rows at any elements.
template <class T>
__global__ void __launch_bounds__(kThreads)
    tiles(T* to, MatrixLines to_at, const T* from, MatrixLines from_at, Extents of, int64_t turns) {
  constexpr int kRows = 32;
  __shared__ T tile[kRows][kRows + 1];
  const int lane = threadIdx.x % kRows, first = threadIdx.x / kRows;
  for (int64_t turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const Place at(of, turn, kRows);
    __syncthreads();
#pragma unroll
    for (int r = first; r < kRows; r += kThreads / kRows) {
      if (at.line + r < of.lines && at.col + lane < of.length) {
        tile[r][lane] = from[at.matrix * from_at.step + (at.line + r) * from_at.ld + at.col + lane];
      }
    }
    __syncthreads();
#pragma unroll
    for (int c = first; c < kRows; c += kThreads / kRows) {
      if (at.col + c < of.length && at.line + lane < of.lines) {
        to[at.matrix * to_at.step + (at.col + c) * to_at.ld + at.line + lane] = tile[lane][c];
      }
    }
  }
}

// Small matrices, element by element in the order of `to`.
template <class T>
__global__ void __launch_bounds__(kThreads)
    elements(T* to, MatrixLines to_at, const T* from, MatrixLines from_at, Extents of, int64_t) {
  const auto size = static_cast<uint32_t>(of.lines * of.length), lines = static_cast<uint32_t>(of.lines);
  for (int64_t e = blockIdx.x * int64_t{kThreads} + threadIdx.x; e < of.count * size;
       e += gridDim.x * int64_t{kThreads}) {
    const int64_t matrix = e / size;
    const auto in_matrix = static_cast<uint32_t>(e - matrix * size);
    const uint32_t col = in_matrix / lines, line = in_matrix % lines;
    to[matrix * to_at.step + col * to_at.ld + line] = from[matrix * from_at.step + line * from_at.ld + col];
  }
}

template <class T>
bool has_whole_vectors(const void* data, MatrixLines at, int64_t length) {
  return (reinterpret_cast<uintptr_t>(data) / sizeof(T) | at.step | at.ld | length) % kOfVector<T> == 0;
}

template <class T>
cudaError_t launch(void* to, MatrixLines to_at, const void* from, MatrixLines from_at, Extents of,
                   cudaStream_t stream) {
  const bool small = of.lines * of.length <= kSmallMatrix;
  const bool whole = has_whole_vectors<T>(from, from_at, of.length) && has_whole_vectors<T>(to, to_at, of.lines);
  const int64_t tile = whole ? kTile<T> : 32;
  const int64_t turns = small ? (of.count * of.lines * of.length + kThreads - 1) / kThreads
                              : of.count * ((of.lines + tile - 1) / tile) * ((of.length + tile - 1) / tile);
  return launch_kernel(small   ? elements<T>
                       : whole ? vectors<T>
                               : tiles<T>,
                       static_cast<int>(std::min(kMostCtas, turns)), kThreads, 0, stream, {}, static_cast<T*>(to),
                       to_at, static_cast<const T*>(from), from_at, of, turns);
}

template <class T>
cudaError_t prepare() {
  cudaFuncAttributes attributes;
  for (const auto kernel : {tiles<T>, vectors<T>, elements<T>}) {
    const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace transposing

cudaError_t prepare_transpose() {
  for (const auto prepare :
       {transposing::prepare<uint16_t>, transposing::prepare<uint32_t>, transposing::prepare<uint64_t>}) {
    const cudaError_t error = prepare();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t transpose(void* to, MatrixLines to_at, const void* from, MatrixLines from_at, int64_t count, int64_t lines,
                      int64_t length, int64_t element_bytes, cudaStream_t stream) {
  if (count == 0 || lines == 0 || length == 0) return cudaSuccess;
  const auto launch = element_bytes == 2   ? transposing::launch<uint16_t>
                      : element_bytes == 4 ? transposing::launch<uint32_t>
                                           : transposing::launch<uint64_t>;
  return launch(to, to_at, from, from_at, {count, lines, length}, stream);
}

}  // namespace sparsek::cuda
