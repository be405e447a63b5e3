// SPDX-License-Identifier: Apache-2.0
// Stores C through shared memory and bulk tensor stores, for kernels that hold their sums in the layout of
// row_store.cuh. Each warp stores its own 16 rows, waits for no other warp, and computes again while the stores run.
#pragma once

#include <cuda.h>

#include "cuda/launch_args.h"
#include "cuda/row_store.cuh"
#include "cuda/tensor_map.h"
#include "cute/arch/copy_sm90.hpp"
#include "cute/arch/copy_sm90_tma.hpp"

namespace sparsek::cuda {

constexpr int kStoreRows = 16;     // rows of a warp
constexpr int kStoreColumns = 64;  // the inner extent of a 128-byte swizzle
constexpr int kStoreBuffers = 2;   // one is written while the other is stored

// The buffers of a warp, aligned to 1024 bytes: (buffer, 16, 64) elements, 128-byte swizzle.
using StoreBuffers = uint8_t[kStoreBuffers][kStoreRows * kStoreColumns * 2];

// Whether bulk tensor stores may write C: its epilogue, address and extents. The stores clip at 16 bytes and not at the
// element, and would write past the end of rows of another length.
template <class Element>
bool can_store_by_tma(const LaunchArgs& args) {
  constexpr int kVector = 16 / sizeof(Element);
  return only_scales<Element>(args.epilogue) && (args.n | args.ldc) % kVector == 0 &&
         reinterpret_cast<uintptr_t>(args.c) % 16 == 0;
}

// Makes the descriptor of C (N, M, 1), with boxes of the size of a buffer.
inline cudaError_t make_store_map(CUtensorMap* map, const LaunchArgs& args) {
  const int64_t row_bytes = args.ldc * 2;
  return make_tensor_map(map, args.c, {{args.n, args.rows, 1}, {row_bytes, row_bytes}}, {kStoreColumns, kStoreRows, 1},
                         128);
}

// Stores alpha acc as a warp's 16 rows of C, from first_row on. Rows and columns beyond C are not written.
template <class Element, int Groups>
__device__ void store_rows_by_tma(const CUtensorMap& map, float alpha, const float (&acc)[Groups][4],
                                  StoreBuffers& buffers, uint32_t first_row, uint32_t first_col, int lane) {
  constexpr int kTurnGroups = kStoreColumns / 8;
  // stmatrix takes the addresses of 8 rows of each of four matrices of 8 x 8 from the lanes: rows 0 to 7 and 8 to 15 of
  // one group of columns, then of the next.
  const int row = lane % kStoreRows, second = lane / kStoreRows;
#pragma unroll
  for (int turn = 0; turn < Groups / kTurnGroups; ++turn) {
    uint8_t* const buffer = buffers[turn % kStoreBuffers];
    cute::tma_store_wait<kStoreBuffers - 1>();  // the storing lane waits until the buffer has been read
    __syncwarp();
#pragma unroll
    for (int g = 0; g < kTurnGroups; g += 2) {
      const float(&a)[4] = acc[turn * kTurnGroups + g];
      const float(&b)[4] = acc[turn * kTurnGroups + g + 1];
      auto* const to = reinterpret_cast<cute::uint128_t*>(buffer + row * 128 + ((g + second) ^ row % 8) * 16);
      cute::SM90_U32x4_STSM_N::copy(
          pack<Element>(alpha * a[0], alpha * a[1]), pack<Element>(alpha * a[2], alpha * a[3]),
          pack<Element>(alpha * b[0], alpha * b[1]), pack<Element>(alpha * b[2], alpha * b[3]), *to);
    }
    cute::tma_store_fence();
    __syncwarp();
    if (lane == 0) {
      cute::SM90_TMA_STORE_3D::copy(&map, buffer, first_col + turn * kStoreColumns, first_row, 0);
      cute::tma_store_arrive();
    }
  }
}

// Call it before a CTA ends: the shared memory must outlive the stores that read it.
__device__ inline void wait_for_stores() { cute::tma_store_wait<0>(); }

}  // namespace sparsek::cuda
