// SPDX-License-Identifier: Apache-2.0
// The bias of a step of cuda/attention_forward.cuh, through shared memory. A warp has a tile of its own there, of its
// 16 queries and a step's keys, so that it waits for no other one: it begins copies long before the scores are there,
// and then adds what they brought, so that their latency lies under other work.
//
// Each row of 8 has its vectors of 16 bytes in another order, so that neither ldmatrix, which reads a vector of 8 rows,
// nor loads of pairs of fp32, which read two vectors of 4 rows, meet a bank twice.
#pragma once

#include <cuda_fp16.h>

#include <type_traits>

#include "cuda/attention.h"
#include "cuda/attention_store.cuh"
#include "cuda/mma_sync.cuh"

namespace sparsek::cuda {
namespace attention_forward {

// What the place of a byte in a row is XORed with.
__device__ constexpr uint32_t bias_swizzle(uint32_t row) { return (row % 4 * 2 + row / 4 % 2) * 16; }

// What is computed from a lane's number is computed anew in each step: else it would stay in registers that are needed.
__device__ inline void keep_nothing_of(uint32_t& lane) { asm volatile("" : "+r"(lane)); }

__device__ inline void store_pointer(uint32_t to, const uint8_t* pointer) {
  asm volatile("st.shared.u64 [%0], %1;" ::"r"(to), "l"(pointer) : "memory");
}
__device__ inline const uint8_t* load_pointer(uint32_t from) {
  const uint8_t* pointer;
  asm volatile("ld.shared.u64 %0, [%1];" : "=l"(pointer) : "r"(from) : "memory");
  return pointer;
}

// Where the bias of a warp's rows comes from.
struct BiasRows {
  const uint8_t* first;            // key 0 of the first row
  int64_t stride_own, stride_met;  // in bytes
  int count;                       // that are there; others become 0
};

// Keys of a step that follow each other.
struct BiasKeys {
  int first;  // of the sequence
  int count;  // from it on, that are there; others become 0
};

// Copies the first `bytes` of Width, and zeros behind them.
template <int Width>
__device__ void begin_copy(uint32_t to, const uint8_t* from, int bytes) {
  if constexpr (Width == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Width), "r"(bytes)
                 : "memory");
  }
}

// Copies one element of 2 bytes of each row.
template <int RowBytes>
__device__ void copy_elements(uint32_t to, const uint8_t* from, const BiasRows& rows, bool is_there) {
  uint16_t of_row[kWarpRows];
#pragma unroll
  for (int row = 0; row < kWarpRows; ++row) {
    of_row[row] = 0;
    if (is_there && row < rows.count) {
      of_row[row] = __ldg(reinterpret_cast<const uint16_t*>(from + row * rows.stride_own));
    }
  }
#pragma unroll
  for (int row = 0; row < kWarpRows; ++row) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"((to ^ bias_swizzle(row)) + row * RowBytes), "h"(of_row[row])
                 : "memory");
  }
}

// Begins to copy a tile of so many keys, Width bytes at a time, of elements of so many Bytes; where Width is more than
// one element keys follow each other in memory. keys(i): key i of the step, and those that follow it.
template <int Keys, int Bytes, int Width, class Of>
__device__ void begin_bias(uint32_t tile, const BiasRows& rows, uint32_t lane, const Of& keys) {
  keep_nothing_of(lane);
  constexpr int kKeys = Width / Bytes, kOfRow = Keys / kKeys;  // keys of a copy, and copies of a row
  constexpr int kAtOnce = kOfRow < 32 ? 32 / kOfRow : 1, kPitch = Keys * Bytes;
  const uint32_t top = kOfRow < 32 ? lane / kOfRow : 0;
#pragma unroll 1
  for (uint32_t at = lane % kOfRow; at < kOfRow; at += 32) {
    const BiasKeys found = keys(at * kKeys);
    const int bytes = min(max(found.count, 0), kKeys) * Bytes;
    const uint32_t to = tile + top * kPitch + (at * Width ^ bias_swizzle(top));
    const uint8_t* from = rows.first + top * rows.stride_own + found.first * (kKeys == 1 ? rows.stride_met : Bytes);
    if constexpr (Width == 2) {
      copy_elements<kPitch>(to, from, rows, bytes > 0);
    } else if (rows.count >= kWarpRows) {
#pragma unroll(Width == 16 ? kWarpRows : 4)
      for (int row = 0; row < kWarpRows; row += kAtOnce) {
        begin_copy<Width>((to ^ bias_swizzle(row)) + row * kPitch, from, bytes);
        from += kAtOnce * rows.stride_own;
      }
    } else {
#pragma unroll 1
      for (int row = 0; row < kWarpRows; row += kAtOnce) {
        begin_copy<Width>((to ^ bias_swizzle(row)) + row * kPitch, from, int(top) + row < rows.count ? bytes : 0);
        from += kAtOnce * rows.stride_own;
      }
    }
  }
}

// Waits for what the warp has begun.
__device__ inline void end_bias() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
}

// s = scale s + bias, of a tile of fp32.
template <int Groups>
__device__ void add_bias_of_floats(float (&s)[Groups][4], uint32_t tile, float scale, uint32_t lane) {
  keep_nothing_of(lane);
  constexpr int kPitch = Groups * 8 * 4;
  const uint32_t row = lane / 4;
  const uint32_t first = tile + row * kPitch + (lane % 4 * 8 ^ bias_swizzle(row));
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float pair[2];
      asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                   : "=f"(pair[0]), "=f"(pair[1])
                   : "r"((first ^ g * 32) + r * 8 * kPitch)
                   : "memory");
#pragma unroll
      for (int e = 0; e < 2; ++e) s[g][2 * r + e] = fmaf(s[g][2 * r + e], scale, pair[e]);
    }
  }
}

template <class Element>
__device__ float2 unpack_pair(uint32_t pair) {
  if constexpr (std::is_same_v<Element, cutlass::bfloat16_t>) {
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  } else {
    return __half22float2(reinterpret_cast<const __half2&>(pair));
  }
}

// The same of a tile of elements of 16 bits.
template <class Element, int Groups>
__device__ void add_bias_of_elements(float (&s)[Groups][4], uint32_t tile, float scale, uint32_t lane) {
  keep_nothing_of(lane);
  constexpr int kPitch = Groups * 8 * 2;
  const uint32_t row = lane % 16;  // of the matrices of 8 x 8 that the lane has addresses for
  const uint32_t first = tile + row * kPitch + (lane / 16 * 16 ^ bias_swizzle(row));
#pragma unroll
  for (int g = 0; g < Groups; g += 2) {
    uint32_t pairs[4];  // rows 0 to 7 and 8 to 15 of group g, then of g + 1
    load_matrices(pairs, first ^ g * 16);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float(&of)[4] = s[g + i / 2];
      const float2 pair = unpack_pair<Element>(pairs[i]);
      of[i % 2 * 2] = fmaf(of[i % 2 * 2], scale, pair.x);
      of[i % 2 * 2 + 1] = fmaf(of[i % 2 * 2 + 1], scale, pair.y);
    }
  }
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
