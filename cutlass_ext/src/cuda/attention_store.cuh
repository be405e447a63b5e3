// SPDX-License-Identifier: Apache-2.0
// Stores a warp's 16 rows of o and lse.
#pragma once

#include "cuda/attention_softmax.cuh"
#include "cuda/row_store.cuh"
#include "cute/arch/copy_sm90.hpp"
#include "cute/arch/copy_sm90_tma.hpp"

namespace sparsek::cuda {
namespace attention_forward {

constexpr int kWarpRows = 16;

// Ends the sums: 1 / sum of each row, or 0 where it sees no key.
__device__ inline void end_rows(const RowState& rows, float scale_log2, float (&weight)[2], float (&lse)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = quad_sum(rows.sum[r]);
    const bool sees_none = rows.top[r] == -INFINITY;
    weight[r] = sees_none ? 0.f : 1.f / sum;
    lse[r] = sees_none ? -INFINITY : (rows.top[r] * scale_log2 + log2f(sum)) * 0.693147180559945309f;
  }
}

struct RowPlace {
  int row, head, batch;
};

// Writes weight times the sums to `buffer`, (chunk, 16, 64) elements with kChunkBytes from chunk to chunk, and from
// there to the 16 rows of a tensor. All lanes have read what the buffer held. The caller waits for it.
template <class Element, int Groups>
__device__ void store_rows(const CUtensorMap& map, const float (&sums)[Groups][4], const float (&weight)[2],
                           uint32_t buffer, const RowPlace& to, int lane) {
  constexpr int kChunkGroups = kChunkColumns / 8;
  // stmatrix takes the addresses of 8 rows of each of four matrices of 8 x 8 from the lanes: rows 0 to 7 and 8 to 15 of
  // one group of columns, then of the next.
  const int buffer_row = lane % kWarpRows, second = lane / kWarpRows;
#pragma unroll
  for (int g = 0; g < Groups; g += 2) {
    const float(&a)[4] = sums[g];
    const float(&b)[4] = sums[g + 1];
    const uint32_t at = buffer + g / kChunkGroups * kChunkBytes + buffer_row * kRowBytes +
                        ((g % kChunkGroups + second) ^ buffer_row % 8) * 16;
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
        "r"(pack<Element>(weight[0] * a[0], weight[0] * a[1])), "r"(pack<Element>(weight[1] * a[2], weight[1] * a[3])),
        "r"(pack<Element>(weight[0] * b[0], weight[0] * b[1])), "r"(pack<Element>(weight[1] * b[2], weight[1] * b[3]))
        : "memory");
  }
  cute::tma_store_fence();
  __syncwarp();
  if (lane == 0) {
    for (int chunk = 0; chunk < (Groups + kChunkGroups - 1) / kChunkGroups; ++chunk) {
      asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
                   "r"(buffer + chunk * kChunkBytes), "r"(chunk * kChunkColumns), "r"(to.row), "r"(to.head),
                   "r"(to.batch)
                   : "memory");
    }
    cute::tma_store_arrive();
  }
}

// Writes a thread's two rows of weight times the sums to rows of `columns` fp32 numbers, from the first of them on.
template <int Groups>
__device__ void store_part(float* to, int columns, const float (&sums)[Groups][4], const float (&weight)[2], int row,
                           int row_end, int lane) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r >= row_end) continue;
    float* const own = to + int64_t(row + 8 * r) * columns;
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
      const int column = g * 8 + lane % 4 * 2;
      if (column >= columns) continue;
      const float2 pair = {weight[r] * sums[g][2 * r], weight[r] * sums[g][2 * r + 1]};
      *reinterpret_cast<float2*>(own + column) = pair;
    }
  }
}

// The same of a tile. row: the thread's first.
template <int Groups>
__device__ void store_part(const AttentionForwardArgs& args, int n_tile, const float (&sums)[Groups][4],
                           const float (&weight)[2], int row, int lane) {
  const int64_t of_head = int64_t(args.seq_q) * args.head_size;
  store_part(args.general.part_o + n_tile * of_head, args.head_size, sums, weight, row, args.seq_q, lane);
}

__device__ inline void store_lse(const AttentionForwardArgs& args, int n_tile, const float (&lse)[2], int row,
                                 int lane) {
  if (args.lse == nullptr || lane % 4 != 0) return;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    if (row + 8 * r < args.seq_q) args.lse[int64_t(n_tile) * args.seq_q + row + 8 * r] = lse[r];
  }
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
