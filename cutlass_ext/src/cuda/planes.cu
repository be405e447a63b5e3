// SPDX-License-Identifier: Apache-2.0
#include "cuda/planes.h"

#include "cuda/launch.cuh"
#include "cuda/planes.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace planes {

constexpr int kThreads = 256;
// Each CTA makes one piece of B, or two of A, which follow each other.
__global__ void __launch_bounds__(kThreads)
    make_kernel(PlaneSizes sizes, PlaneOperands operands, PlaneMemory memory, bool aligned_a, bool aligned_b) {
  constexpr int kEights = kPieceK / kPlaneVector, kEightsB = kPieceColumns / kPlaneVector;
  const int64_t ctas_a = sizes.pieces_a() / 2;
  float x[2][kPlaneVector];
  if (blockIdx.x < ctas_a) {
    const int row = threadIdx.x / kEights, eight = threadIdx.x % kEights;
    const int64_t steps = sizes.block_k / kPieceK, piece = blockIdx.x * int64_t{2};
    const float* const from = operands.values + (piece / steps * kPieceRows + row) * sizes.block_k +
                              piece % steps * kPieceK + eight * kPlaneVector;
    char* const to = memory.a + piece * kPieceBytesA + place_in_plane_a(row, eight);
#pragma unroll
    for (int i = 0; i < 2; ++i) read_vector(x[i], from + i * kPieceK, kPlaneVector, aligned_a);
#pragma unroll
    for (int i = 0; i < 2; ++i) write_planes(to + i * kPieceBytesA, kPlaneBytesA, x[i]);
  } else {
    constexpr int kHalf = kPieceK / 2;
    const int row = threadIdx.x / kEightsB, eight = threadIdx.x % kEightsB;
    const int64_t piece = blockIdx.x - ctas_a, k = piece % sizes.steps_b() * kPieceK + row;
    const int64_t column = piece / sizes.steps_b() * kPieceColumns + eight * kPlaneVector;
    char* const to = memory.b + piece * kPieceBytesB;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t at = k + i * kHalf;
      read_vector(x[i], operands.b + at * operands.ldb + column, at < sizes.cols ? sizes.n - column : 0, aligned_b);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) write_planes(to + place_in_plane_b(row + i * kHalf, eight), kPlaneBytesB, x[i]);
  }
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i <= sizes.panels_b();
       i += gridDim.x * int64_t{kThreads}) {
    memory.progress[i] = 0;
  }
}

}  // namespace planes

cudaError_t prepare_planes() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, planes::make_kernel);
}

cudaError_t make_planes(const PlaneSizes& sizes, const PlaneOperands& operands, const PlaneMemory& to, int64_t panels,
                        cudaStream_t stream) {
  const int64_t ctas = sizes.pieces_a() / 2 + panels * sizes.steps_b();
  if (ctas == 0) return cudaSuccess;
  return launch_kernel(planes::make_kernel, static_cast<int>(ctas), planes::kThreads, 0, stream, {}, sizes, operands,
                       to, aligned_a(operands), aligned_b(operands));
}

}  // namespace sparsek::cuda
