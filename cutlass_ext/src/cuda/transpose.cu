// SPDX-License-Identifier: Apache-2.0
#include "cuda/transpose.h"

#include <algorithm>

#include "cuda/dependent_launch.cuh"
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

// The tile of a matrix that a CTA copies in a turn. Elements that memory has room for make fewer turns than 2^32.
struct Place {
  int64_t matrix, line, col;

  __device__ Place(const Extents& of, uint32_t turn, int tile) {
    const auto across = static_cast<uint32_t>((of.length + tile - 1) / tile);
    const uint32_t tiles = static_cast<uint32_t>((of.lines + tile - 1) / tile) * across;
    matrix = turn / tiles;
    const uint32_t in_matrix = turn % tiles;
    line = int64_t(in_matrix / across) * tile;
    col = int64_t(in_matrix % across) * tile;
  }
};

// These keep their place, and are whole, whatever the compiler makes of the code around them.
__device__ inline uint4 load_vector(const void* from) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
  return v;
}
__device__ inline void store_vector(void* to, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// 16 bytes of elements, e(0) first.
template <class T, class Element>
__device__ uint4 vector_of(const Element& e) {
  uint32_t words[4];
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (sizeof(T) == 2) {
      words[w] = uint32_t(e(2 * w)) | uint32_t(e(2 * w + 1)) << 16;
    } else if constexpr (sizeof(T) == 4) {
      words[w] = e(w);
    } else {
      words[w] = uint32_t(e(w / 2) >> w % 2 * 32);
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

// Through shared memory, where vector v of row r is at v ^ (r / kOfVector): so neither the vectors that are written
// there nor the elements that are read, of one column by each thread, lie in the same banks. All rows begin at
// multiples of 16 bytes, and consist of whole vectors, in both orders.
template <class T>
__global__ void __launch_bounds__(kThreads)
    vectors(T* to, MatrixLines to_at, const T* from, MatrixLines from_at, Extents of, uint32_t turns) {
  wait_for_previous_launch();
  constexpr int kE = kOfVector<T>, kRows = kTile<T>, kOfThread = kRows * kVectors / kThreads;
  static_assert(kOfThread * kThreads == kRows * kVectors);
  __shared__ __align__(16) T tile[kRows][kVectors * kE];
  const int row = threadIdx.x / kVectors, v = threadIdx.x % kVectors;
  constexpr int kStep = kThreads / kVectors;  // rows from a vector of a thread to its next
  for (uint32_t turn = blockIdx.x; turn < turns; turn += gridDim.x) {
    const Place at(of, turn, kRows);
    // What lies beyond the matrix is not stored: some vector of it is loaded instead.
    const int64_t col = at.col + v * kE < of.length ? at.col + v * kE : at.col;
    const T* const source = from + at.matrix * from_at.step + col;
    uint4 loaded[kOfThread];  // all loads are under way before the first is waited for
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) {
      loaded[i] = load_vector(source + min(at.line + row + i * kStep, of.lines - 1) * from_at.ld);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) {
      const int r = row + i * kStep;
      *reinterpret_cast<uint4*>(&tile[r][(v ^ (r / kE)) * kE]) = loaded[i];
    }
    __syncthreads();
    T* const target = to + at.matrix * to_at.step + (at.col + row) * to_at.ld + at.line + v * kE;
#pragma unroll
    for (int i = 0; i < kOfThread; ++i) {
      const int c = row + i * kStep;
      if (at.col + c >= of.length || at.line + v * kE >= of.lines) continue;
      store_vector(target + i * kStep * to_at.ld,
                   vector_of<T>([&](int e) { return tile[v * kE + e][(c / kE ^ v) * kE + c % kE]; }));
    }
  }
}

// The same for rows at any elements.
template <class T>
__global__ void __launch_bounds__(kThreads)
    tiles(T* to, MatrixLines to_at, const T* from, MatrixLines from_at, Extents of, uint32_t turns) {
  wait_for_previous_launch();
  constexpr int kRows = 32;
  __shared__ T tile[kRows][kRows + 1];
  const int lane = threadIdx.x % kRows, first = threadIdx.x / kRows;
  for (uint32_t turn = blockIdx.x; turn < turns; turn += gridDim.x) {
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
    elements(T* to, MatrixLines to_at, const T* from, MatrixLines from_at, Extents of, uint32_t) {
  wait_for_previous_launch();
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
                       static_cast<int>(std::min(kMostCtas, turns)), kThreads, 0, stream, {/*overlap=*/true},
                       static_cast<T*>(to), to_at, static_cast<const T*>(from), from_at, of,
                       static_cast<uint32_t>(turns));
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
