// SPDX-License-Identifier: Apache-2.0
// Kernel family "wmma", a baseline: the fragments of the CUDA programming guide, for comparison. It runs only where it
// is named.
//
// A CTA computes TileM x 128 elements of C, TileM being 128 or a multiple of 256. The sums of a tile of 512 x 128 would
// take all of an SM's registers, so a tile that is taller than 256 is computed in parts of 256 rows, one after the
// other, each of which loads B again. 8 warps, 4 x 2 of them, each compute 32 x 64 or 64 x 64 as fragments of 16 x 16.
//
//   A   by cp.async, a step of TileK columns at a time:  stage (rows of the part, TileK):(TileK + 8, 1)
//   B   by cp.async:                                      stage (TileK, 128):(128 + 8, 1)
//   C   (M, N):(ldc, 1) fragment by fragment through shared memory: any M, N and pitch
//
// The stages are filled in turn, one ahead of the products.
#pragma once

#include <cuda_bf16.h>
#include <mma.h>

#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cute/arch/util.hpp"
#include "cutlass/arch/memory_sm80.h"
#include "cutlass/bfloat16.h"

namespace sparsek::cuda {
namespace wmma {

namespace fragments = nvcuda::wmma;

constexpr int kWarpRows = 4, kWarpColumns = 2;  // rows and columns of warps
constexpr int kThreads = kWarpRows * kWarpColumns * 32;
constexpr int kTileN = 128;
constexpr int kStages = 2;
constexpr int kEdge = 16;     // rows and columns of a fragment
constexpr int kPadding = 8;   // elements after each row, so that rows begin in different banks
constexpr int kVector = 8;    // elements of one copy
constexpr int kPatchLd = 20;  // pitch of a fragment of C: lanes that read a row each have no bank conflicts

template <int TileM, int TileK>
struct Shape {
  static constexpr int kPartM = TileM < 256 ? TileM : 256;
  static constexpr int kParts = TileM / kPartM;
  static constexpr int kTileK = TileK;
  static constexpr int kLdA = TileK + kPadding, kLdB = kTileN + kPadding;
  static constexpr int kFragmentsM = kPartM / kWarpRows / kEdge;  // fragments of a warp
  static constexpr int kFragmentsN = kTileN / kWarpColumns / kEdge;
  static constexpr int kCtasPerSm = kPartM == 128 ? 2 : 1;
  static_assert(TileM % kPartM == 0 && kPartM % (kWarpRows * kEdge) == 0 && TileK % kEdge == 0);
};

template <class S>
struct Stage {
  alignas(128) __nv_bfloat16 a[S::kPartM * S::kLdA];  // (kPartM, kTileK):(kLdA, 1)
  alignas(128) __nv_bfloat16 b[S::kTileK * S::kLdB];  // (kTileK, kTileN):(kLdB, 1)
};

template <class S>
union SharedStorage {
  Stage<S> stages[kStages];
  // A fragment of C (16, 16):(kPatchLd, 1) for each warp, used when the stages are not needed any more.
  alignas(128) float patches[kThreads / 32][kEdge * kPatchLd];
};

// The steps of a part of a tile: entry by entry, TileK columns of A at a time.
struct Step {
  int entry = 0, k = 0;
  __device__ void advance(int block_k, int tile_k) {
    k += tile_k;
    if (k == block_k) {
      k = 0;
      ++entry;
    }
  }
};

// Assigns threads to a matrix in shared memory whose rows are Vectors copies wide: each thread has a fixed column and
// copies every kRowsAtOnce-th row.
template <int Rows, int Vectors>
struct Shares {
  static constexpr int kRowsAtOnce = 1 << (31 - __builtin_clz(kThreads / Vectors));
  static constexpr int kPasses = Rows / kRowsAtOnce;
  static_assert(Rows % kRowsAtOnce == 0);
  const bool any = threadIdx.x < kRowsAtOnce * Vectors;
  const int row = threadIdx.x / Vectors, col = threadIdx.x % Vectors * kVector;
};

// Begins the copy of one vector: the first `elements` elements, and zeros for the others.
__device__ inline void copy(__nv_bfloat16* to, const __nv_bfloat16* from, int elements) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(cute::cast_smem_ptr_to_uint(to)), "l"(from),
               "r"(elements * int(sizeof(__nv_bfloat16))));
}

// Begins the copies of one step; elements outside of B are zero.
template <class S>
__device__ void load(const LaunchArgs& args, Stage<S>& stage, const WorkTile& tile, int row_in_block, Step step) {
  using SharesA = Shares<S::kPartM, S::kTileK / kVector>;
  using SharesB = Shares<S::kTileK, kTileN / kVector>;
  if (const SharesA own; own.any) {
    const int64_t block = __ldg(args.entry_block + tile.entry_begin + step.entry);
    const auto* from = static_cast<const __nv_bfloat16*>(args.values) +
                       (block * args.block_m + row_in_block + own.row) * args.block_k + step.k + own.col;
    __nv_bfloat16* to = stage.a + own.row * S::kLdA + own.col;
#pragma unroll
    for (int i = 0; i < SharesA::kPasses; ++i) {
      copy(to + i * SharesA::kRowsAtOnce * S::kLdA, from, kVector);
      from += SharesA::kRowsAtOnce * args.block_k;
    }
  }
  if (const SharesB own; own.any) {
    const int64_t k = int64_t(__ldg(args.entry_k + tile.entry_begin + step.entry)) + step.k + own.row;
    const int64_t n = int64_t(tile.n_tile) * kTileN + own.col;
    const int columns = int(max(int64_t(0), min(int64_t(kVector), args.n - n)));
    const int64_t rows = args.cols - k;
    const auto* const b = static_cast<const __nv_bfloat16*>(args.b);
    const auto* from = b + k * args.ldb + n;
    __nv_bfloat16* to = stage.b + own.row * S::kLdB + own.col;
#pragma unroll
    for (int i = 0; i < SharesB::kPasses; ++i) {
      const int inside = i * SharesB::kRowsAtOnce < rows ? columns : 0;
      copy(to + i * SharesB::kRowsAtOnce * S::kLdB, inside > 0 ? from : b, inside);
      from += SharesB::kRowsAtOnce * args.ldb;
    }
  }
}

// The fragments of C of one warp.
template <class S>
struct Accumulators {
  fragments::fragment<fragments::accumulator, kEdge, kEdge, kEdge, float> sum[S::kFragmentsM][S::kFragmentsN];
};

template <class S>
__device__ void multiply(const Stage<S>& stage, Accumulators<S>& acc, int warp_row, int warp_column) {
  using Operand = __nv_bfloat16;
#pragma unroll
  for (int k = 0; k < S::kTileK; k += kEdge) {
    fragments::fragment<fragments::matrix_b, kEdge, kEdge, kEdge, Operand, fragments::row_major> b[S::kFragmentsN];
#pragma unroll
    for (int j = 0; j < S::kFragmentsN; ++j) {
      fragments::load_matrix_sync(b[j], stage.b + k * S::kLdB + (warp_column * S::kFragmentsN + j) * kEdge, S::kLdB);
    }
#pragma unroll
    for (int i = 0; i < S::kFragmentsM; ++i) {
      fragments::fragment<fragments::matrix_a, kEdge, kEdge, kEdge, Operand, fragments::row_major> a;
      fragments::load_matrix_sync(a, stage.a + (warp_row * S::kFragmentsM + i) * kEdge * S::kLdA + k, S::kLdA);
#pragma unroll
      for (int j = 0; j < S::kFragmentsN; ++j) fragments::mma_sync(acc.sum[i][j], a, b[j], acc.sum[i][j]);
    }
  }
}

// C = alpha patch + beta C for 16 x 16 elements; each lane has half a row.
__device__ inline void store_patch(const LaunchArgs& args, const float* patch, int64_t first_row, int64_t first_col,
                                   int lane) {
  const int64_t row = first_row + lane / 2, col = first_col + lane % 2 * kVector;
  if (row >= args.rows) return;
  const float* const from = patch + lane / 2 * kPatchLd + lane % 2 * kVector;
  auto* const to = static_cast<__nv_bfloat16*>(args.c) + row * args.ldc + col;
  alignas(16) __nv_bfloat16 out[kVector];
  alignas(16) float sums[kVector];
  *reinterpret_cast<float4*>(sums) = *reinterpret_cast<const float4*>(from);
  *reinterpret_cast<float4*>(sums + 4) = *reinterpret_cast<const float4*>(from + 4);
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    float value = args.epilogue.alpha * sums[i];
    if (args.epilogue.beta != 0 && col + i < args.n) value += args.epilogue.beta * __bfloat162float(to[i]);
    out[i] = __float2bfloat16_rn(value);
  }
  if (col + kVector <= args.n && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(out);
    return;
  }
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    if (col + i < args.n) to[i] = out[i];
  }
}

// Rows [first_row, first_row + kPartM) of a tile.
template <class S>
__device__ void compute_part(const LaunchArgs& args, SharedStorage<S>& shared, const WorkTile& tile,
                             int64_t first_row) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / kWarpColumns, warp_column = warp % kWarpColumns;
  const int row_in_block = int(first_row % args.block_m);
  Accumulators<S> acc;
#pragma unroll
  for (int i = 0; i < S::kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < S::kFragmentsN; ++j) fragments::fill_fragment(acc.sum[i][j], 0.f);
  }

  const int steps = tile.entry_count * (args.block_k / S::kTileK);
  Step next;
  const auto load_next = [&](int step) {
    if (step < steps) load<S>(args, shared.stages[step % kStages], tile, row_in_block, next);
    next.advance(args.block_k, S::kTileK);
    cutlass::arch::cp_async_fence();  // an empty group after the last step, so that the count of groups stays the same
  };
  load_next(0);
  for (int step = 0; step < steps; ++step) {
    load_next(step + 1);
    cutlass::arch::cp_async_wait<1>();
    __syncthreads();
    multiply<S>(shared.stages[step % kStages], acc, warp_row, warp_column);
    __syncthreads();
  }

  float* const patch = shared.patches[warp];
#pragma unroll
  for (int i = 0; i < S::kFragmentsM; ++i) {
#pragma unroll
    for (int j = 0; j < S::kFragmentsN; ++j) {
      fragments::store_matrix_sync(patch, acc.sum[i][j], kPatchLd, fragments::mem_row_major);
      __syncwarp();
      store_patch(args, patch, first_row + (warp_row * S::kFragmentsM + i) * kEdge,
                  int64_t(tile.n_tile) * kTileN + (warp_column * S::kFragmentsN + j) * kEdge, lane);
      __syncwarp();
    }
  }
  __syncthreads();  // the patches share memory with the next part's first stage
}

template <class S>
__global__ void __launch_bounds__(kThreads, S::kCtasPerSm) wmma_kernel(const __grid_constant__ LaunchArgs args) {
  extern __shared__ __align__(128) uint8_t memory[];
  auto& shared = *reinterpret_cast<SharedStorage<S>*>(memory);
  for (int t = blockIdx.x; t < args.tiles_count; t += gridDim.x) {
    const WorkTile tile = args.tiles[t];
    for (int part = 0; part < S::kParts; ++part) {
      const int64_t first_row = (int64_t(tile.m_tile) * S::kParts + part) * S::kPartM;
      if (first_row < args.rows) compute_part<S>(args, shared, tile, first_row);
    }
  }
}

}  // namespace wmma

template <class Config>
struct WmmaKernel {
  using Shape = wmma::Shape<Config::kTileM, Config::kTileK>;
  static_assert(std::is_same_v<typename Config::Element, cutlass::bfloat16_t>);
  static_assert(Config::kTileN == wmma::kTileN && Config::kStages == wmma::kStages);
  static_assert(Config::kBlockM % Config::kTileM == 0, "a tile lies in one block row");
  static constexpr int kSharedBytes = sizeof(wmma::SharedStorage<Shape>);

  static cudaError_t prepare() {
    return cudaFuncSetAttribute(wmma::wmma_kernel<Shape>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  }
  static cudaError_t launch(const LaunchArgs& args) {
    return launch_kernel(wmma::wmma_kernel<Shape>, args.workers, wmma::kThreads, kSharedBytes, args.stream, {}, args);
  }
};

template <class Config>
constexpr KernelOps wmma_ops() {
  using K = WmmaKernel<Config>;
  return {&K::prepare,        &K::launch,          K::Shape::kCtasPerSm,  /*tensor_cores=*/true, /*tma_b=*/true,
          /*any_rows=*/false, /*align_values=*/16, /*any_epilogue=*/false};
}

}  // namespace sparsek::cuda
