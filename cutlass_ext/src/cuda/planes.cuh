// SPDX-License-Identifier: Apache-2.0
// Makes and reads the planes of planes.h.
#pragma once

#include <cuda_bf16.h>

#include "cuda/planes.h"

namespace sparsek::cuda {

// Bytes from the begin of a plane to the 16 bytes that hold eight columns of a row. K: columns of A in a piece.
template <int K>
__device__ int place_in_plane_a(int row, int eight) {
  constexpr int kRowBytes = K * 2;
  return row * kRowBytes + (eight ^ row * kRowBytes / 128 % (kRowBytes / 16)) * 16;
}
template <int K>
__device__ int place_in_plane_b(int row, int eight) {
  return eight / 8 * PieceBytes<K>::kChunk + row * 128 + (eight % 8 ^ (row & 7)) * 16;
}

constexpr int kPlaneVector = 8;  // elements of 16 bytes of a plane

// The planes of two numbers, the first in the lower half of a word.
struct PlanePair {
  uint32_t plane[kPlanes];
};

__device__ inline float lower(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float upper(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ inline uint32_t rounded_pair(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return reinterpret_cast<const uint32_t&>(pair);
}

constexpr float kPlaneFactor = 0x1p8f;  // of a plane to the next

// Where h is not finite: the planes of x in the lower halves.
__device__ inline PlanePair split_large(float x, float high) {
  if (!isfinite(x)) return {__float_as_uint(high) >> 16, 0, 0};
  PlanePair to;
#pragma unroll
  for (int i = 0; i < kPlanes; ++i) {
    const uint32_t cut = __float_as_uint(x) & 0xffff0000u;
    to.plane[i] = cut >> 16;
    x = (x - __uint_as_float(cut)) * kPlaneFactor;
  }
  return to;
}

__device__ inline PlanePair split(float x, float y) {
  PlanePair to;
  const uint32_t high = to.plane[0] = rounded_pair(x, y);
  float of_x = (x - lower(high)) * kPlaneFactor, of_y = (y - upper(high)) * kPlaneFactor;
  to.plane[1] = rounded_pair(of_x, of_y);
  of_x = (of_x - lower(to.plane[1])) * kPlaneFactor;
  of_y = (of_y - upper(to.plane[1])) * kPlaneFactor;
  to.plane[2] = rounded_pair(of_x, of_y);
  const auto replace = [&](float number, float its_high, int shift) {
    const PlanePair large = split_large(number, its_high);
#pragma unroll
    for (int i = 0; i < kPlanes; ++i) {
      to.plane[i] = (to.plane[i] & 0xffff0000u >> shift) | large.plane[i] << shift;
    }
  };
  if (!isfinite(lower(high))) replace(x, lower(high), 0);
  if (!isfinite(upper(high))) replace(y, upper(high), 16);
  return to;
}

// Reads eight elements, of which `count` exist.
__device__ inline void read_vector(float (&x)[kPlaneVector], const float* from, int64_t count, bool aligned) {
  if (aligned && count >= kPlaneVector) {
    const float4 first = __ldg(reinterpret_cast<const float4*>(from)),
                 second = __ldg(reinterpret_cast<const float4*>(from) + 1);
    x[0] = first.x, x[1] = first.y, x[2] = first.z, x[3] = first.w;
    x[4] = second.x, x[5] = second.y, x[6] = second.z, x[7] = second.w;
  } else {
#pragma unroll
    for (int i = 0; i < kPlaneVector; ++i) x[i] = i < count ? __ldg(from + i) : 0.f;
  }
}

__device__ inline void write_planes(char* to, int plane_bytes, const float (&x)[kPlaneVector]) {
  uint32_t words[kPlanes][kPlaneVector / 2];
#pragma unroll
  for (int i = 0; i < kPlaneVector; i += 2) {
    const PlanePair pair = split(x[i], x[i + 1]);
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) words[p][i / 2] = pair.plane[p];
  }
#pragma unroll
  for (int p = 0; p < kPlanes; ++p) {
    *reinterpret_cast<uint4*>(to + p * plane_bytes) = {words[p][0], words[p][1], words[p][2], words[p][3]};
  }
}

}  // namespace sparsek::cuda
