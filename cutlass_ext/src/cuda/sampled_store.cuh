// SPDX-License-Identifier: Apache-2.0
// Stores a warp's 16 rows of a cell (cuda/sampled_tile.h) from sums in the layout of D in mma_sync.cuh.
#pragma once

#include "cuda/row_store.cuh"
#include "cuda/sampled.h"
#include "cute/arch/copy_sm90.hpp"

namespace sparsek::cuda {
namespace sampled_wgmma_kernel {

constexpr int kStoreBytes = 1024;  // of a warp's buffer

// A warp's 16 rows of a cell.
struct CellPart {
  int64_t block;
  int row, column;           // in the block
  int rows_left, cols_left;  // of A, from there on
};

template <int Groups>
__device__ void clear_beyond(float (&sums)[Groups][4], const CellPart& part, int lane) {
  if (part.rows_left >= 16 && part.cols_left >= Groups * 8) return;
#pragma unroll
  for (int i = 0; i < Groups * 4; ++i) {
    const int row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (row >= part.rows_left || column >= part.cols_left) sums[i / 4][i % 4] = 0.f;
  }
}

// Stores sums as Elements, 16 bytes by a lane, so that each instruction writes 512 bytes of a few rows: through the
// warp's buffer, (rows, 8 Groups), in which vector v of row r is at v ^ r * Groups / 8.
template <class Element, int Groups>
__device__ void store_vectors(const SampledArgs& p, float (&sums)[Groups][4], const CellPart& part, uint8_t* buffer,
                              int lane) {
  constexpr int kRowBytesOfCell = Groups * 16;
  constexpr int kRows = kStoreBytes / kRowBytesOfCell < 16 ? kStoreBytes / kRowBytesOfCell : 16;  // at once
  const auto place = [&](int row, int vector) {
    return buffer + row * kRowBytesOfCell + ((vector ^ row * Groups / 8) % Groups) * 16;
  };
  auto* const c = static_cast<Element*>(p.c) + (part.block * p.block_m + part.row) * p.block_k + part.column;
#pragma unroll
  for (int first = 0; first < 16; first += kRows) {
    __syncwarp();  // what was there has been read
#pragma unroll
    for (int m = 0; m < kRows / 8 * Groups; m += 4) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int g = (m + i) % Groups, half = first / 8 + (m + i) / Groups;
        words[i] = pack<Element>(sums[g][half * 2], sums[g][half * 2 + 1]);
      }
      const int matrix = m + lane / 8;  // whose row this lane names
      auto* const to = place(matrix / Groups * 8 + lane % 8, matrix % Groups);
      cute::SM90_U32x4_STSM_N::copy(words[0], words[1], words[2], words[3], *reinterpret_cast<cute::uint128_t*>(to));
    }
    __syncwarp();
#pragma unroll
    for (int v = lane; v < kRows * Groups; v += 32) {
      const int row = v / Groups, vector = v % Groups;
      const uint4 whole = *reinterpret_cast<const uint4*>(place(row, vector));
      __stcs(reinterpret_cast<uint4*>(c + int64_t(first + row) * p.block_k + vector * 8), whole);
    }
  }
}

// Every epilogue and alignment. Element: the type of X.
template <class Element, int Groups>
__device__ void store_part(const SampledArgs& p, float (&sums)[Groups][4], const CellPart& part, uint8_t* buffer,
                           int lane) {
  LaunchArgs as_matrix = {};  // the blocks one under the other
  as_matrix.rows = INT64_MAX;
  as_matrix.ldc = p.block_k;
  as_matrix.epilogue = p.epilogue;
  as_matrix.epilogue.ldc_in = p.block_k;
  const int64_t first = part.block * p.block_m * p.block_k;
  const auto behind = [&](const void* of) {
    const int64_t bytes = first * (p.epilogue.dtype_c == ElementType::kFp32 ? 4 : 2);
    return of == nullptr ? nullptr : const_cast<char*>(static_cast<const char*>(of)) + bytes;
  };
  as_matrix.c = behind(p.c);
  as_matrix.epilogue.c_in = behind(p.epilogue.c_in);
  const auto row = static_cast<uint32_t>(part.row + lane / 4);
  const RowTile tile = {{row, row + 8}, static_cast<uint32_t>(part.column), Groups * 8, lane % 4 * 2};
  apply_epilogue</*AnyMajor=*/false>(as_matrix, sums, tile);
  clear_beyond(sums, part, lane);
  if (p.whole_vectors && p.epilogue.dtype_c == kTypeOf<Element>) {
    return store_vectors<Element>(p, sums, part, buffer, lane);
  }
  with_type(p.epilogue.dtype_c, [&](auto type) { write<decltype(type)>(as_matrix, sums, tile); });
}

}  // namespace sampled_wgmma_kernel
}  // namespace sparsek::cuda
