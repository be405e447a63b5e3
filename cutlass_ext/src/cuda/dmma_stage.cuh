// SPDX-License-Identifier: Apache-2.0
// What the warps of the dmma kernels do with a stage: its operands from shared memory to the tensor cores.
//
// The order of columns of A within an instruction, and that of rows and columns of C among lanes, is chosen so that
// each lane loads 16 bytes at a time from shared memory (8 of A's fp32), without conflicts, to the registers where the
// instruction has them.
#pragma once

#include <cstdint>

#include "cuda/mma_fp64.cuh"

namespace sparsek::cuda {
namespace dmma_kernel {

constexpr int kTileM = 64, kStageK = 16;
constexpr int kColumnsOfWarp = 32, kColumnsOfMma = 16;
constexpr int kMmasAcross = kColumnsOfWarp / kColumnsOfMma;
constexpr int kRowBytesB = 128, kChunkBytes = kStageK * kRowBytesB;  // of a chunk: the columns that these bytes hold
constexpr int kUnitRows = 8;                                         // what a slot has at least

// Where elements lie in a stage.
template <class Element>
struct Format {
  static constexpr int kRowBytesA = kStageK * int(sizeof(Element));
  static constexpr int kBytesA = kTileM * kRowBytesA, kUnitBytes = kUnitRows * kRowBytesA;
  static constexpr int kChunkColumns = kRowBytesB / int(sizeof(Element));  // of B
  static constexpr int kChunksOfWarp = kColumnsOfWarp / kChunkColumns;
  static constexpr int kWords = int(sizeof(Element)) / 2;  // of 16 bits, as TMA counts
};

// 16 columns of B, transposed, are the first operand of the instructions, and 8 rows of A, transposed, the second: so
// the sums of 8 rows that have no block are left out. With lane = 4 r + c, what the instructions count as columns c,
// c + 4, c + 8 and c + 12 of A are 2 c, 2 c + 1, 2 c + 8 and 2 c + 9 of the stage; and row r of A is row_at(r). What
// they count as columns r and r + 8 of B are 2 r and 2 r + 1 of the 16, and of fp32, 4 r + 2 m and 4 r + 2 m + 1 of the
// warp's 32 in instruction m.
__device__ inline int row_at(int r) { return r / 2 + r % 2 * 4; }

__device__ inline void load_pair(uint32_t from, double& first, double& second) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(first), "=d"(second) : "r"(from) : "memory");
}

__device__ inline void load_pair_of_fp32(uint32_t from, double& first, double& second) {
  float x, y;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(from) : "memory");
  first = x, second = y;
}

__device__ inline float4 load_four(uint32_t from) {
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(from)
               : "memory");
  return x;
}

// What a warp adds to its sums from a stage: (unit of 8 rows, 16 columns of B, 4). present: bit u: unit u has a block;
// not used where all have. A unit is left out by a branch, which __syncwarp makes of the condition: an instruction
// whose predicate is false takes the tensor cores as long as another.
template <bool AllPresent, bool Narrow, int Units>
__device__ inline void add_stage(double, uint32_t stage_a, uint32_t stage_b, uint32_t present, int lane,
                                 double (&acc)[Units][kMmasAcross][4]) {
  const int r = lane / 4, c = lane % 4;
  double b[kMmasAcross][8];
#pragma unroll
  for (int i = 0; i < (Narrow ? 2 : 4); ++i) {
    const int row = 2 * c + i % 2;
    const uint32_t from = stage_b + (i / 2 * 8 + row) * kRowBytesB + ((r ^ row) << 4);
#pragma unroll
    for (int m = 0; m < kMmasAcross; ++m) load_pair(from + m * kChunkBytes, b[m][2 * i], b[m][2 * i + 1]);
  }
  const int row = row_at(r);
  const uint32_t near = stage_a + row * Format<double>::kRowBytesA + ((c ^ row) << 4), far = near ^ 64;
#pragma unroll
  for (int u = 0; u < Units; ++u) {
    if (!AllPresent && (present >> u & 1) == 0) continue;
    if constexpr (!AllPresent) __syncwarp();
    double a[4];
    load_pair(near + u * Format<double>::kUnitBytes, a[0], a[1]);
    if constexpr (!Narrow) load_pair(far + u * Format<double>::kUnitBytes, a[2], a[3]);
#pragma unroll
    for (int m = 0; m < kMmasAcross; ++m) {
      if constexpr (Narrow) {
        mma_m16n8k8(acc[u][m], b[m], a);
      } else {
        mma_m16n8k16(acc[u][m], b[m], a);
      }
    }
  }
}

// Of fp32, 8 columns of A after the others, since there are no registers for all of B as fp64.
template <bool AllPresent, bool Narrow, int Units>
__device__ inline void add_stage(float, uint32_t stage_a, uint32_t stage_b, uint32_t present, int lane,
                                 double (&acc)[Units][kMmasAcross][4]) {
  const int r = lane / 4, c = lane % 4, row = row_at(r);
  const uint32_t of_a = stage_a + row * Format<float>::kRowBytesA + ((c / 2 ^ row / 2) << 4) + c % 2 * 8;
#pragma unroll
  for (int half = 0; half < (Narrow ? 1 : 2); ++half) {
    double b[kMmasAcross][8];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float4 four = load_four(stage_b + (half * 8 + 2 * c + i) * kRowBytesB + ((r ^ (2 * c + i)) << 4));
      b[0][2 * i] = four.x, b[0][2 * i + 1] = four.y;
      b[1][2 * i] = four.z, b[1][2 * i + 1] = four.w;
    }
#pragma unroll
    for (int u = 0; u < Units; ++u) {
      if (!AllPresent && (present >> u & 1) == 0) continue;
      if constexpr (!AllPresent) __syncwarp();
      double a[4];
      load_pair_of_fp32((of_a ^ half * 32) + u * Format<float>::kUnitBytes, a[0], a[1]);
#pragma unroll
      for (int m = 0; m < kMmasAcross; ++m) mma_m16n8k8(acc[u][m], b[m], a);
    }
  }
}

}  // namespace dmma_kernel
}  // namespace sparsek::cuda
