// SPDX-License-Identifier: Apache-2.0
// What a lane of the row_mma family loads and multiplies, by the type of elements. Lane (g, t) of a warp is 4 g + t.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/mma_fp64.cuh"
#include "cuda/mma_sync.cuh"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"

namespace sparsek::cuda::row_mma {

// kCount elements of kBytes each, in registers.
template <int kCount, int kBytes>
struct Elements {
  static constexpr int kWords = kCount * kBytes / 4;
  uint32_t words[kWords];
};

// kPiece elements that are aligned to as many, 16 bytes at most, to the place of element `at`, or 0 there if not
// `is_one`: without a branch, so that lanes do not wait for each other. Of two halves of a word the first one is loaded
// first.
template <int kPiece, int kCount, int kBytes>
__device__ inline void load_piece(bool is_one, const void* from, int at, Elements<kCount, kBytes>& to) {
  constexpr int kPieceBytes = kPiece * kBytes;
  uint32_t* const w = to.words + at * kBytes / 4;
  if constexpr (kPieceBytes == 16) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
        "@p ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];}"
        : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "=&r"(w[3])
        : "l"(from), "r"(int(is_one)));
  } else if constexpr (kPieceBytes == 8) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0; @p ld.global.nc.v2.b32 {%0, %1}, [%2];}"
        : "=&r"(w[0]), "=&r"(w[1])
        : "l"(from), "r"(int(is_one)));
  } else if constexpr (kPieceBytes == 4) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.b32 %0, [%1];}"
                 : "=&r"(w[0])
                 : "l"(from), "r"(int(is_one)));
  } else {
    uint16_t half;
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; mov.b16 %0, 0; @p ld.global.nc.b16 %0, [%1];}"
                 : "=&h"(half)
                 : "l"(from), "r"(int(is_one)));
    w[0] = at % 2 == 0 ? half : w[0] | uint32_t(half) << 16;
  }
}

// bf16 and fp16, with sums in fp32. A lane reads eight columns of a row of B, two for each 16 of a tile.
template <class Element>
struct Lane {
  using Number = float;
  static constexpr int kColumns = 8, kTileN = 64;

  // d += a b for eight rows of A at a time, by four columns of a lane: those from 4 q on.
  template <int kRowTiles, int kDepth>
  __device__ static void multiply(const Elements<kDepth * 4, 2> (&a)[kRowTiles],
                                  const Elements<kColumns, 2> (&b)[kDepth * 4],
                                  float (&d)[kRowTiles][kColumns / 2][4]) {
#pragma unroll
    for (int q = 0; q < kDepth; ++q) {
#pragma unroll
      for (int m = 0; m < kColumns / 2; ++m) {
        const auto pair = [&](int row, int half) {
          return __byte_perm(b[4 * q + row].words[m], b[4 * q + row + 1].words[m], half == 0 ? 0x5410 : 0x7632);
        };
        const uint32_t words[4] = {pair(0, 0), pair(0, 1), pair(2, 0), pair(2, 1)};
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          mma_m16n8k16<Element>(d[r][m], words, a[r].words[2 * q], a[r].words[2 * q + 1]);
        }
      }
    }
  }
};

// fp32 and fp64, with products and sums in fp64. A lane reads four columns of a row of B, two for each 16 of a tile.
template <class Element>
struct WideLane {
  using Number = double;
  static constexpr int kColumns = 4, kTileN = 32, kBytes = sizeof(Element);

  template <int kCount>
  __device__ static double number(const Elements<kCount, kBytes>& of, int at) {
    Element element;
    memcpy(&element, of.words + at * kBytes / 4, kBytes);
    return element;
  }
  template <int kRowTiles, int kDepth>
  __device__ static void multiply(const Elements<kDepth * 4, kBytes> (&a)[kRowTiles],
                                  const Elements<kColumns, kBytes> (&b)[kDepth * 4],
                                  double (&d)[kRowTiles][kColumns / 2][4]) {
#pragma unroll
    for (int q = 0; q < kDepth; ++q) {
#pragma unroll
      for (int m = 0; m < kColumns / 2; ++m) {
        double of_b[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) of_b[i] = number(b[4 * q + i / 2], 2 * m + i % 2);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) {
          const double of_a[4] = {number(a[r], 4 * q), number(a[r], 4 * q + 1), number(a[r], 4 * q + 2),
                                  number(a[r], 4 * q + 3)};
          mma_m16n8k16(d[r][m], of_b, of_a);
        }
      }
    }
  }
};
template <>
struct Lane<float> : WideLane<float> {};
template <>
struct Lane<double> : WideLane<double> {};

}  // namespace sparsek::cuda::row_mma
