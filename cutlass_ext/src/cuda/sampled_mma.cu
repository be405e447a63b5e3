// SPDX-License-Identifier: Apache-2.0
// SPARSEK_SDD by mma.sync, for low and narrow blocks. Eight warps share a segment's columns and, of 64 rows, the rows.
//
//   stage   x (Rows, 32), y (256, 32), K-major; 16 bytes of a row, vector v, at v ^ (row / 2 % 4)
#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/mma_sync.cuh"
#include "cuda/sampled_tiles.cuh"

namespace sparsek::cuda {
// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace sampled_mma_kernel {

using sampled::kColumns;
using sampled::Segment;

constexpr int kThreads = 256, kDepth = 32, kStages = 4, kVector = 8, kVectors = kDepth / kVector;

template <int Rows>
struct Tile {
  static constexpr int kWarpsDown = Rows >= 64 ? 2 : 1;
  static constexpr int kWarpRows = Rows / kWarpsDown, kWarpColumns = kColumns / (kThreads / 32 / kWarpsDown);
  static constexpr int kStageBytes = (Rows + kColumns) * kDepth * 2;
  static constexpr int kBytes = std::max(kStages * kStageBytes, sampled::kSumsBytes<Rows>);
};

__device__ inline uint32_t place_of(int row, int vector) {  // in bytes
  return (row * kVectors + (vector ^ row / 2 % kVectors)) * 16;
}

__device__ inline void copy_vector(uint32_t to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Groups>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

// The rows that a thread copies vectors of, and their vector.
template <class T, int Rows>
struct Copies {
  static constexpr int kRowsAtOnce = kThreads / kVectors;
  static constexpr int kOfX = (Rows + kRowsAtOnce - 1) / kRowsAtOnce, kOfY = kColumns / kRowsAtOnce;
  const T *x[kOfX], *y[kOfY];  // null: zeros, or where there is no entry, nothing
  bool is_read[kOfY];

  __device__ Copies(const SampledArgs& p, const Segment& segment) {
    const int row = threadIdx.x / kVectors;
#pragma unroll
    for (int i = 0; i < kOfX; ++i) {
      const int64_t at = int64_t(segment.block_row) * p.block_m + segment.part * Rows + row + i * kRowsAtOnce;
      x[i] = at < p.rows ? static_cast<const T*>(p.x) + at * p.ldx : nullptr;
    }
#pragma unroll
    for (int i = 0; i < kOfY; ++i) {
      const int column = row + i * kRowsAtOnce;
      is_read[i] = column < segment.columns(p);
      y[i] = nullptr;
      if (!is_read[i]) continue;
      const int64_t at = int64_t(p.index.col_idx[segment.first + column / p.block_k]) * p.block_k + column % p.block_k;
      if (at < p.cols) y[i] = static_cast<const T*>(p.y) + at * p.ldy;
    }
  }

  // The stage of columns [k, k + kDepth) of x and y; zeros beyond n.
  __device__ void start(const SampledArgs& p, uint32_t stage, int64_t k) const {
    const int row = threadIdx.x / kVectors, vector = threadIdx.x % kVectors;
    const int64_t column = k + vector * kVector;
    const int there = static_cast<int>(min(int64_t{kVector}, max(int64_t{0}, p.n - column))) * 2;
    const auto copy = [&](uint32_t to, const T* from) {
      const bool none = from == nullptr || there == 0;
      copy_vector(to, none ? p.x : from + column, none ? 0 : there);
    };
#pragma unroll
    for (int i = 0; i < kOfX; ++i) {
      const int at = row + i * kRowsAtOnce;
      if (at < Rows) copy(stage + place_of(at, vector), x[i]);
    }
#pragma unroll
    for (int i = 0; i < kOfY; ++i) {
      if (is_read[i]) copy(stage + Rows * kDepth * 2 + place_of(row + i * kRowsAtOnce, vector), y[i]);
    }
  }
};

template <int Rows>
using Sums = float[Tile<Rows>::kWarpRows / 16][Tile<Rows>::kWarpColumns / 8][4];

template <class T, int Rows>
__device__ void multiply_stage(Sums<Rows>& acc, uint32_t stage, int first_row, int first_column, int lane) {
  constexpr int kDown = Tile<Rows>::kWarpRows / 16, kPairs = Tile<Rows>::kWarpColumns / 16;
  const uint32_t y = stage + Rows * kDepth * 2;
#pragma unroll
  for (int k = 0; k < kVectors; k += 2) {
    uint32_t a[kDown][4];
#pragma unroll
    for (int i = 0; i < kDown; ++i)
      load_matrices(a[i], stage + place_of(first_row + i * 16 + lane % 16, k + lane / 16));
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      uint32_t b[4];
      load_matrices(b, y + place_of(first_column + j * 16 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
#pragma unroll
      for (int i = 0; i < kDown; ++i) {
        mma_m16n8k16<T>(acc[i][2 * j], a[i], b[0], b[1]);
        mma_m16n8k16<T>(acc[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

template <class T, int Rows>
__device__ void compute(const SampledArgs& p, const Segment& segment, uint8_t* memory) {
  using Of = Tile<Rows>;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first_row = warp % Of::kWarpsDown * Of::kWarpRows, first_column = warp / Of::kWarpsDown * Of::kWarpColumns;
  const bool computes = first_column < segment.columns(p);
  const auto stages = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
  const Copies<T, Rows> copies(p, segment);
  const auto turns = static_cast<int>((p.n + kDepth - 1) / kDepth);
  Sums<Rows> acc = {};
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < turns) copies.start(p, stages + s * Of::kStageBytes, int64_t(s) * kDepth);
    commit_copies();
  }
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    const int next = turn + kStages - 1;
    if (next < turns) copies.start(p, stages + next % kStages * Of::kStageBytes, int64_t(next) * kDepth);
    commit_copies();
    if (computes) {
      multiply_stage<T, Rows>(acc, stages + turn % kStages * Of::kStageBytes, first_row, first_column, lane);
    }
  }
  wait_for_copies<0>();
  __syncthreads();
  auto* const sums = reinterpret_cast<float*>(memory);
  if (computes) {
#pragma unroll
    for (int i = 0; i < Of::kWarpRows / 16; ++i) {
#pragma unroll
      for (int j = 0; j < Of::kWarpColumns / 8; ++j) {
        float* const to =
            sums + (first_row + i * 16 + lane / 4) * sampled::kPitch + first_column + j * 8 + lane % 4 * 2;
        *reinterpret_cast<float2*>(to) = {acc[i][j][0], acc[i][j][1]};
        *reinterpret_cast<float2*>(to + 8 * sampled::kPitch) = {acc[i][j][2], acc[i][j][3]};
      }
    }
  }
  __syncthreads();
  sampled::store_blocks<Rows, kThreads>(p, segment, sums, threadIdx.x);
  __syncthreads();
}

template <class T, int Rows>
__global__ void __launch_bounds__(kThreads) kernel(SampledArgs p) {
  extern __shared__ __align__(16) uint8_t memory[];
  wait_for_previous_launch();
  if (!is_good(p.index)) return;
  sampled::for_each_segment<Rows>(p, [&](const Segment& segment) { compute<T, Rows>(p, segment, memory); });
}

template <class T, int Rows>
Prepared prepared;

template <class T, int Rows>
cudaError_t prepare() {
  return cudaFuncSetAttribute(kernel<T, Rows>, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile<Rows>::kBytes);
}

template <class T, int Rows>
cudaError_t launch(const SampledArgs& args, cudaStream_t stream) {
  return launch_kernel(kernel<T, Rows>, static_cast<int>(sampled::tiles_of<Rows>(args)), kThreads, Tile<Rows>::kBytes,
                       stream, {/*overlap=*/true}, args);
}

// That for as many rows as divide the height of blocks.
template <class T>
SampledOps ops(int32_t block_m) {
  if (block_m % 64 == 0) return {&prepared<T, 64>, prepare<T, 64>, launch<T, 64>};
  if (block_m % 32 == 0) return {&prepared<T, 32>, prepare<T, 32>, launch<T, 32>};
  return {&prepared<T, 16>, prepare<T, 16>, launch<T, 16>};
}

}  // namespace sampled_mma_kernel

SampledOps sampled_mma(sparsek_dtype dtype, int32_t block_m) {
  namespace k = sampled_mma_kernel;
  return dtype == SPARSEK_BF16 ? k::ops<cutlass::bfloat16_t>(block_m) : k::ops<cutlass::half_t>(block_m);
}

}  // namespace sparsek::cuda
