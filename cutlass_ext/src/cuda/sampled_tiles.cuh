// SPDX-License-Identifier: Apache-2.0
// The tiles of SPARSEK_SDD by mma.sync, and how blocks are made of sums.
//
// A tile is part of a block row's height by 256 columns of consecutive entries. Where these are of several block rows,
// those of each, a segment, are computed in turn, from column 0 on.
#pragma once

#include "cuda/epilogue.cuh"
#include "cuda/sampled.h"

namespace sparsek::cuda {
namespace sampled {

constexpr int kColumns = 256;
constexpr int kVector = 8;  // columns that a thread stores at once; of one block, whose width is a multiple

// The block row of an entry.
__device__ inline int32_t row_of(const SampledArgs& p, int32_t entry) {
  int32_t row = 0, beyond = p.block_rows;  // row_ptr[row] <= entry
  while (beyond - row > 1) {
    const int32_t middle = row + (beyond - row) / 2;
    if (p.index.row_ptr[middle] <= entry) {
      row = middle;
    } else {
      beyond = middle;
    }
  }
  return row;
}

__device__ inline int64_t block_of(const SampledArgs& p, int32_t entry) {
  return p.index.block_idx == nullptr ? entry : p.index.block_idx[entry];
}

// Entries [first, first + count) of a block row, and rows from part * Rows on of their blocks.
struct Segment {
  int32_t block_row, part, first, count;
  __device__ int columns(const SampledArgs& p) const { return count * p.block_k; }
};

// The segments of a CTA's tiles.
template <int Rows, class Compute>
__device__ void for_each_segment(const SampledArgs& p, Compute&& compute) {
  const int32_t entries = kColumns / p.block_k, total = p.index.row_ptr[p.block_rows], parts = p.block_m / Rows;
  for (int64_t tile = blockIdx.x;; tile += gridDim.x) {
    const int64_t begin = tile / parts * entries;
    if (begin >= total) return;
    auto first = static_cast<int32_t>(begin);
    const auto end = static_cast<int32_t>(min(begin + entries, int64_t{total}));
    for (int32_t row = row_of(p, first); first < end; ++row) {
      const int32_t of_row = min(end, p.index.row_ptr[row + 1]);
      if (of_row <= first) continue;
      compute(Segment{row, static_cast<int32_t>(tile % parts), first, of_row - first});
      first = of_row;
    }
  }
}

template <int Rows>
unsigned tiles_of(const SampledArgs& p) {
  const int64_t entries = kColumns / p.block_k, tiles = (p.nnzb + entries - 1) / entries * (p.block_m / Rows);
  const int64_t ctas = tiles < INT32_MAX ? tiles : INT32_MAX;
  return static_cast<unsigned>(p.workers > 0 && p.workers < ctas ? p.workers : ctas);
}

// Sums of a segment in shared memory, (Rows, 256):(kPitch, 1). Threads of a warp that hold sums as mma.sync leaves them
// write to different banks.
constexpr int kPitch = kColumns + 8;
template <int Rows>
constexpr int kSumsBytes = Rows * kPitch * 4;

// 16 bytes, or 32, of C's type.
__device__ inline void store_vector(ElementType dtype, void* to, int64_t at, const float (&value)[kVector]) {
  union {
    uint4 whole;
    __nv_bfloat162 bf16[kVector / 2];
    __half2 fp16[kVector / 2];
  } packed;
  if (dtype == ElementType::kBf16) {
#pragma unroll
    for (int i = 0; i < kVector / 2; ++i) packed.bf16[i] = __floats2bfloat162_rn(value[2 * i], value[2 * i + 1]);
  } else if (dtype == ElementType::kFp16) {
#pragma unroll
    for (int i = 0; i < kVector / 2; ++i) packed.fp16[i] = __floats2half2_rn(value[2 * i], value[2 * i + 1]);
  } else {
    auto* const whole = reinterpret_cast<float4*>(static_cast<float*>(to) + at);
    whole[0] = {value[0], value[1], value[2], value[3]};
    whole[1] = {value[4], value[5], value[6], value[7]};
    return;
  }
  *reinterpret_cast<uint4*>(static_cast<uint16_t*>(to) + at) = packed.whole;
}

// Stores a segment's parts of blocks. For all of `Threads` threads.
template <int Rows, int Threads>
__device__ void store_blocks(const SampledArgs& p, const Segment& segment, const float* sums, int thread) {
  const Epilogue& e = p.epilogue;
  const float alpha = alpha_of(e), beta = beta_of(e);
  const int vectors = segment.columns(p) / kVector;
#pragma unroll 1
  for (int v = thread; v < Rows * vectors; v += Threads) {
    const int row = v / vectors, column = v % vectors * kVector;
    const int32_t entry = segment.first + column / p.block_k, i = segment.part * Rows + row, j = column % p.block_k;
    const int64_t at = (block_of(p, entry) * p.block_m + i) * p.block_k + j;
    const int64_t cols_left = p.cols - (int64_t(p.index.col_idx[entry]) * p.block_k + j);
    const bool row_is_in = int64_t(segment.block_row) * p.block_m + i < p.rows;
    const float* const from = sums + row * kPitch + column;
    float value[kVector];
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      const float c_old = beta == 0.f ? 0.f : load_element(e.dtype_c, e.c_in, at + k);
      value[k] = row_is_in && k < cols_left ? finish(e, alpha, beta, from[k], c_old, 0.f) : 0.f;
    }
    if (p.whole_vectors) {
      store_vector(e.dtype_c, p.c, at, value);
    } else {
#pragma unroll
      for (int k = 0; k < kVector; ++k) store_element(e.dtype_c, p.c, at + k, value[k]);
    }
  }
}

}  // namespace sampled
}  // namespace sparsek::cuda
