// SPDX-License-Identifier: Apache-2.0
// fp32 numbers as three numbers of bf16, for tensor cores: x = h + 2^-8 m + 2^-16 l.
//
// h is x rounded to bf16, m what is left, times 2^8, rounded, and l what is left then, times 2^16. The three have 24
// bits of fraction together, so the sum is x exactly, whatever its magnitude: without the factors the lower bits of x <
// 2^-110 would be below the smallest bf16. Where h would be Inf though x is finite, all three are cut off instead of
// rounded. For Inf and NaN, h is x, and m and l are 0.
//
// The planes of A and B lie in memory as a stage of the kernel wants them in shared memory, the rows swizzled as wgmma
// expects them, so that a stage is copied in one piece. All extents are padded with zeros.
//
//   A   (nnzb, bm / 64, bk / 32) pieces of (plane, 64 rows, 32 columns), 64-byte swizzle
//   B   (N / 128, K / 32) pieces of (plane, 2 chunks of 64 columns, 32 rows, 64 columns), 128-byte swizzle; N and K
//       padded to whole tiles and blocks
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsek::cuda {

constexpr int kPlanes = 3;
constexpr int kPieceK = 32;         // columns of A, rows of B
constexpr int kPieceRows = 64;      // of A
constexpr int kPieceColumns = 128;  // of B
constexpr int kPlaneBytesA = kPieceRows * kPieceK * 2;
constexpr int kPieceBytesA = kPlanes * kPlaneBytesA;
constexpr int kPlaneChunkColumns = 64;  // of B: a row of a chunk fills the swizzle's 128 bytes
constexpr int kPlaneChunkBytes = kPieceK * kPlaneChunkColumns * 2;
constexpr int kPlaneBytesB = kPieceColumns / kPlaneChunkColumns * kPlaneChunkBytes;
constexpr int kPieceBytesB = kPlanes * kPlaneBytesB;

constexpr int kColumnsOfSum = 1024;   // of A: so many are summed up by tensor cores before the sums are set aside
constexpr int kPlaneConsumers = 256;  // threads of a CTA that hold sums
constexpr int kPlaneSums = kPieceColumns / 8 * 4;  // of such a thread

// The operands of a product, whose blocks are multiples of 64 high and wide.
struct PlaneSizes {
  int64_t nnzb, block_m, block_k;
  int64_t cols, n;  // K, N
  int64_t workers;  // the most CTAs that multiply

  constexpr int64_t pieces_a() const { return nnzb * (block_m / kPieceRows) * (block_k / kPieceK); }
  // Pieces of a panel of 128 columns of B.
  constexpr int64_t steps_b() const { return (cols + block_k - 1) / block_k * (block_k / kPieceK); }
  constexpr int64_t panels_b() const { return (n + kPieceColumns - 1) / kPieceColumns; }
  constexpr int64_t pieces_b() const { return panels_b() * steps_b(); }
  // Sums that a tile has set aside; those of longer rows are added to the last.
  constexpr int most_aside() const {
    constexpr int64_t kMost = 7;
    const int64_t parts = (steps_b() * kPieceK - 1) / kColumnsOfSum;
    return static_cast<int>(parts < kMost ? parts : kMost);
  }
  constexpr int64_t bytes_of_sums() const {
    return workers * most_aside() * kPlaneConsumers * kPlaneSums * int64_t{sizeof(float)};
  }
  constexpr int64_t bytes_a() const { return pieces_a() * kPieceBytesA; }
  constexpr int64_t bytes_b() const { return pieces_b() * kPieceBytesB; }
};

// Where a product's planes lie in its workspace.
struct PlaneMemory {
  char *a, *b;
  float4* sums;  // (workers, most_aside, kPlaneSums / 4, kPlaneConsumers)
  // (1 + panels): pieces of B that somebody has begun with, and for each panel those that are complete; only of panels
  // from the first one on that make_planes leaves out.
  uint32_t* progress;

  PlaneMemory(const PlaneSizes& sizes, void* workspace)
      : a(static_cast<char*>(workspace)),
        b(a + sizes.bytes_a()),
        sums(reinterpret_cast<float4*>(b + sizes.bytes_b())),
        progress(reinterpret_cast<uint32_t*>(b + sizes.bytes_b() + sizes.bytes_of_sums())) {}
  static size_t bytes(const PlaneSizes& sizes) {
    return static_cast<size_t>(sizes.bytes_a() + sizes.bytes_b() + sizes.bytes_of_sums()) +
           sizeof(uint32_t) * static_cast<size_t>(1 + sizes.panels_b());
  }
};

// fp32 operands: A's values (nnzb, bm, bk), B (K, N):(ldb, 1). They may lie at any elements.
struct PlaneOperands {
  const float *values, *b;
  int64_t ldb;
};

// Whether eight elements of each row can be read by two loads.
inline bool aligned_a(const PlaneOperands& operands) { return reinterpret_cast<uintptr_t>(operands.values) % 16 == 0; }
inline bool aligned_b(const PlaneOperands& operands) {
  return reinterpret_cast<uintptr_t>(operands.b) % 16 == 0 && operands.ldb % 4 == 0;
}

// Loads the kernel. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_planes();

// Writes the planes of A and of the first `panels` panels of B, and zeros as the progress of all.
cudaError_t make_planes(const PlaneSizes& sizes, const PlaneOperands& operands, const PlaneMemory& to, int64_t panels,
                        cudaStream_t stream);

}  // namespace sparsek::cuda
