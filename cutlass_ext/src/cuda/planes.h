// SPDX-License-Identifier: Apache-2.0
// fp32 numbers as three numbers of bf16, for tensor cores: x = h + 2^-8 m + 2^-16 l.
//
// h is x rounded to bf16, m what is left, times 2^8, rounded, and l what is left then, times 2^16. The three have 24
// bits of fraction together, so the sum is x exactly, whatever its magnitude: without the factors the lower bits of x <
// 2^-110 would be below the smallest bf16. Where h would be Inf though x is finite, all three are cut off instead of
// rounded. For Inf and NaN, h is x, and m and l are 0.
//
// The planes of A and B lie in memory as the stages of the kernel want them in shared memory, in pieces of 32 or 16
// columns of A, the rows swizzled as wgmma expects them, so that a piece is copied at once. All extents are padded with
// zeros.
//
//   A   pieces of (plane, 64 rows, k columns), swizzle of 2 k bytes: (nnzb, bm / 64, bk / k) where bm is a multiple of
//       64, else of the plan's entries (entries, halves of the tile, bk / k), with zeros where a row has no block
//   B   pieces of (plane, 2 chunks of 64 columns, k rows, 64 columns), 128-byte swizzle: (N / 128, K / k), N and K
//       padded to whole tiles and blocks
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/launch_args.h"

namespace sparsek::cuda {

constexpr int kPlanes = 3;
constexpr int kPieceRows = 64;          // of A
constexpr int kPieceColumns = 128;      // of B
constexpr int kPlaneChunkColumns = 64;  // of B: a row of a chunk fills the swizzle's 128 bytes

// Bytes of pieces of K columns of A, and K rows of B.
template <int K>
struct PieceBytes {
  static constexpr int kPlaneA = kPieceRows * K * 2, kA = kPlanes * kPlaneA;
  static constexpr int kChunk = K * kPlaneChunkColumns * 2;
  static constexpr int kPlaneB = kPieceColumns / kPlaneChunkColumns * kChunk, kB = kPlanes * kPlaneB;
};

constexpr int kPlaneTileM = 128;
constexpr int kPlaneHalves = kPlaneTileM / kPieceRows;  // of the rows of a tile

constexpr int kColumnsOfSum = 1024;   // of A: so many are summed up by tensor cores before the sums are set aside
constexpr int kPlaneConsumers = 256;  // threads of a CTA that hold sums
constexpr int kPlaneSums = kPieceColumns / 8 * 4;  // of such a thread

// The operands of a product, whose blocks are multiples of 8 high, from 128 on of 64, and of piece_k wide.
struct PlaneSizes {
  int64_t piece_k;  // columns of A in a piece
  int64_t entries;  // of the plan, with its gaps; at most
  int64_t nnzb, block_m, block_k;
  int64_t cols, n;  // K, N
  int64_t workers;  // the most CTAs that multiply

  constexpr bool gathers() const { return block_m % kPieceRows != 0; }
  constexpr int64_t steps() const { return block_k / piece_k; }  // of a block
  constexpr int64_t pieces_a() const {
    return (gathers() ? entries * kPlaneHalves : nnzb * (block_m / kPieceRows)) * steps();
  }
  // Pieces of a panel of 128 columns of B.
  constexpr int64_t steps_b() const { return (cols + block_k - 1) / block_k * steps(); }
  constexpr int64_t panels_b() const { return (n + kPieceColumns - 1) / kPieceColumns; }
  constexpr int64_t pieces_b() const { return panels_b() * steps_b(); }
  // Sums that a tile has set aside; those of longer rows are added to the last.
  constexpr int most_aside() const {
    constexpr int64_t kMost = 7;
    const int64_t parts = (steps_b() * piece_k - 1) / kColumnsOfSum;
    return static_cast<int>(parts < kMost ? parts : kMost);
  }
  constexpr int64_t bytes_of_sums() const {
    return workers * most_aside() * kPlaneConsumers * kPlaneSums * int64_t{sizeof(float)};
  }
  constexpr int64_t bytes_a() const { return pieces_a() * piece_k * (kPlanes * kPieceRows * 2); }
  constexpr int64_t bytes_b() const { return pieces_b() * piece_k * (kPlanes * kPieceColumns * 2); }
};

// Where a product's planes lie in its workspace.
struct PlaneMemory {
  char *a, *b;
  float4* sums;  // (workers, most_aside, kPlaneSums / 4, kPlaneConsumers)
  // (1 + panels): pieces of B that somebody has begun with, and for each panel those that are complete; only of panels
  // from the first one on that make_planes leaves out.
  uint32_t* progress;

  // of_a: where A's planes are kept; null: they lie before the others.
  PlaneMemory(const PlaneSizes& sizes, void* workspace, void* of_a = nullptr)
      : a(static_cast<char*>(of_a != nullptr ? of_a : workspace)),
        b(static_cast<char*>(workspace) + (of_a != nullptr ? 0 : sizes.bytes_a())),
        sums(reinterpret_cast<float4*>(b + sizes.bytes_b())),
        progress(reinterpret_cast<uint32_t*>(b + sizes.bytes_b() + sizes.bytes_of_sums())) {}
  // Without A's planes.
  static size_t bytes(const PlaneSizes& sizes) {
    return static_cast<size_t>(sizes.bytes_b() + sizes.bytes_of_sums()) +
           sizeof(uint32_t) * static_cast<size_t>(1 + sizes.panels_b());
  }
};

PlaneSizes plane_sizes(const LaunchArgs& args, int piece_k);

// Whether eight elements of each row can be read by two loads.
bool aligned_values(const LaunchArgs& args);
bool aligned_b(const LaunchArgs& args);

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_planes();

// Writes the planes of A's values, but where they are kept (LaunchArgs::laid_out), and of the first `panels` panels of
// B, and zeros as the progress of all. Values and B may lie at any elements.
cudaError_t make_planes(const LaunchArgs& args, const PlaneSizes& sizes, const PlaneMemory& to, int64_t panels);
// Those of A's values alone.
cudaError_t make_planes_of_a(const LaunchArgs& args, const PlaneSizes& sizes, void* to);

}  // namespace sparsek::cuda
