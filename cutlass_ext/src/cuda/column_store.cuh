// SPDX-License-Identifier: Apache-2.0
// Stores C in either order, for kernels that hold their sums in the layout of row_store.cuh. An M-major C goes through
// shared memory, transposed, and bulk tensor stores of 64 of its columns, of which the 64 rows of a warpgroup are 128
// bytes each; where those may not write it, from registers.
#pragma once

#include <cuda.h>

#include "cuda/launch_args.h"
#include "cuda/row_store.cuh"
#include "cuda/tensor_map.h"
#include "cuda/tma_store.cuh"
#include "cute/arch/copy_sm90.hpp"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {

constexpr int kColumnStoreWarps = 4;  // a warpgroup: they have 64 consecutive rows
constexpr int kColumnStoreRows = kColumnStoreWarps * kStoreRows;
constexpr int kColumnBufferBytes = kStoreColumns * kColumnStoreRows * 2;
static_assert(kColumnStoreRows == kStoreColumns, "a column of a buffer is a row of the 128-byte swizzle");

// Those of a warpgroup: of each warp for rows, of all together for columns.
using WarpgroupBuffers = StoreBuffers[kColumnStoreWarps];
static_assert(sizeof(WarpgroupBuffers) == kStoreBuffers * kColumnBufferBytes);

// Whether some lane of a warpgroup says so. All of its threads call it; it is their named barrier of that number.
__device__ inline bool any_of_warpgroup(bool mine, int warpgroup) {
  int any;
  asm volatile(
      "{\n"
      ".reg .pred mine, any;\n"
      "setp.ne.s32 mine, %1, 0;\n"
      "barrier.cta.red.or.pred any, %2, %3, mine;\n"
      "selp.s32 %0, 1, 0, any;\n"
      "}"
      : "=r"(any)
      : "r"(int(mine)), "r"(warpgroup + int(cutlass::arch::NamedBarrier::ReservedNamedBarrierCount)),
        "n"(kColumnStoreWarps * 32)
      : "memory");
  return any != 0;
}

// Whether bulk tensor stores may write an M-major C: its type, address and extents. They clip at 16 bytes, as those of
// rows do.
template <class Element>
bool can_store_columns_by_tma(const LaunchArgs& args) {
  constexpr int kVector = 16 / sizeof(Element);
  return args.epilogue.dtype_c == kTypeOf<Element> && (args.rows | args.ldc) % kVector == 0 &&
         reinterpret_cast<uintptr_t>(args.c) % 16 == 0;
}

// Makes the descriptor of an M-major C (M, N, 1), with boxes of the size of a buffer.
inline cudaError_t make_column_store_map(CUtensorMap* map, const LaunchArgs& args) {
  const int64_t column_bytes = args.ldc * 2;
  return make_tensor_map(map, args.c, {{args.rows, args.n, 1}, {column_bytes, column_bytes}},
                         {kColumnStoreRows, kStoreColumns, 1}, 128);
}

// What a warpgroup stores its columns with. The buffers: (buffer, 64 columns, 64 rows) elements, 128-byte swizzle.
struct ColumnStore {
  const CUtensorMap& map;
  uint8_t* buffers;
  uint32_t first_row;         // of the warpgroup
  int warpgroup, warp, lane;  // the warp of the warpgroup

  __device__ bool is_leader() const { return warp == 0 && lane == 0; }
  __device__ void synchronize() const { cutlass::arch::NamedBarrier::sync(kColumnStoreWarps * 32, warpgroup); }

  // Stores alpha sums as the warpgroup's rows of 64 columns. chunk: counts them. Rows and columns beyond C are not
  // written.
  template <class Element>
  __device__ void store(float alpha, const float (*sums)[4], int chunk, uint32_t first_col) const {
    uint8_t* const buffer = buffers + chunk % kStoreBuffers * kColumnBufferBytes;
    if (is_leader()) cute::tma_store_wait<kStoreBuffers - 1>();  // until the buffer has been read
    synchronize();
    // stmatrix takes the addresses of 8 columns of each of four matrices of 8 x 8 from the lanes: rows 0 to 7 and 8 to
    // 15 of one group of columns, then of the next.
    const int vector = (warp * 2 + lane / 8 % 2) ^ lane % 8;
#pragma unroll
    for (int g = 0; g < kStoreColumns / 8; g += 2) {
      const float(&a)[4] = sums[g];
      const float(&b)[4] = sums[g + 1];
      const int column = (g + lane / 16) * 8 + lane % 8;
      cute::SM90_U16x8_STSM_T::copy(
          pack<Element>(alpha * a[0], alpha * a[1]), pack<Element>(alpha * a[2], alpha * a[3]),
          pack<Element>(alpha * b[0], alpha * b[1]), pack<Element>(alpha * b[2], alpha * b[3]),
          *reinterpret_cast<cute::uint128_t*>(buffer + column * 128 + vector * 16));
    }
    cute::tma_store_fence();
    synchronize();
    if (is_leader()) {
      cute::SM90_TMA_STORE_3D::copy(&map, buffer, first_row, first_col, 0);
      cute::tma_store_arrive();
    }
  }
};

// An M-major C = sums. Eight lanes have consecutive rows of a column. leave_out: bit g: sums[g] are not stored.
template <class Type, int Groups>
__device__ void write_columns(const LaunchArgs& args, const float (&sums)[Groups][4], const RowTile& tile,
                              uint32_t leave_out = 0) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool inside = tile.row[h] < args.rows;
    Type* out = static_cast<Type*>(args.c) + tile.row[h] + (int64_t(tile.first_col) + tile.col) * args.ldc;
#pragma unroll
    for (int g = 0; g < Groups; ++g, out += 8 * args.ldc) {
      const bool stored = inside && (leave_out >> g & 1) == 0;
      const int at = g * 8 + tile.col;
      if (stored && at < tile.columns) out[0] = Type(sums[g][h * 2]);
      if (stored && at + 1 < tile.columns) out[args.ldc] = Type(sums[g][h * 2 + 1]);
    }
  }
}

// Stores a warp's 16 rows of C from registers, the columns from first_col on, in the order that args say; arguments as
// in store_rows. leave_out: bit g: acc[g] are not stored.
template <int Groups>
__device__ void write_either_major(const LaunchArgs& args, float (&acc)[Groups][4], const uint32_t (&row)[2],
                                   uint32_t first_col, int lane, uint32_t leave_out = 0) {
  const RowTile tile = {{row[0], row[1]}, first_col, int(min(int64_t(Groups * 8), args.n - first_col)), lane % 4 * 2};
  store_in_turns<true, true>(args, acc, tile, leave_out, [&](const auto& sums, const RowTile& of, uint32_t groups) {
    with_type(args.epilogue.dtype_c, [&](auto type) {
      using Type = decltype(type);
      args.c_m_major ? write_columns<Type>(args, sums, of, groups) : write<Type>(args, sums, of, groups);
    });
  });
}

// Stores a warp's 16 rows of C, the columns from first_col on, in the order that args say; arguments as in store_rows.
// buffers: those of the warpgroup. All of its warps call it, each with its number in the CTA; by_tma: see
// can_store_by_tma and can_store_columns_by_tma.
template <class Element, int Groups>
__device__ void store_either_major(const CUtensorMap& map, bool by_tma, const LaunchArgs& args, float (&acc)[Groups][4],
                                   WarpgroupBuffers& buffers, const uint32_t (&row)[2], uint32_t first_col, int warp,
                                   int lane) {
  const int of_warpgroup = warp % kColumnStoreWarps;
  const uint32_t first_row = row[0] - lane / 4;
  const ColumnStore columns = {
      map, &buffers[0][0][0], first_row - of_warpgroup * kStoreRows, warp / kColumnStoreWarps, of_warpgroup, lane};
  if (by_tma && only_scales<Element>(args.epilogue)) {
    const float alpha = alpha_of(args.epilogue);
    if (!args.c_m_major) {
      return store_rows_by_tma<Element>(map, alpha, acc, buffers[of_warpgroup], first_row, first_col, lane);
    }
#pragma unroll
    for (int chunk = 0; chunk < Groups * 8 / kStoreColumns; ++chunk) {
      columns.store<Element>(alpha, acc + chunk * (kStoreColumns / 8), chunk, first_col + chunk * kStoreColumns);
    }
    return;
  }
  const RowTile tile = {{row[0], row[1]}, first_col, int(min(int64_t(Groups * 8), args.n - first_col)), lane % 4 * 2};
  int chunk = 0;
  store_in_turns<true>(args, acc, tile, 0, [&](const auto& sums, const RowTile& of, uint32_t) {
    if (args.c_m_major && by_tma) {
      columns.store<Element>(1.f, sums, chunk++, of.first_col);
    } else {
      with_type(args.epilogue.dtype_c, [&](auto type) {
        using Type = decltype(type);
        args.c_m_major ? write_columns<Type>(args, sums, of) : write<Type>(args, sums, of);
      });
    }
  });
}

}  // namespace sparsek::cuda
