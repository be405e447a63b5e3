// SPDX-License-Identifier: Apache-2.0
// The softmax of a warp's 16 rows of scores: of its sums, as wgmma leaves them, a thread has two rows.
#pragma once

#include <climits>
#include <cmath>

#include "cuda/attention_shared.cuh"

namespace sparsek::cuda {
namespace attention_forward {

__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// What the rows' exponents refer to, and the sums of their exponentials so far, of a thread's columns.
struct RowState {
  float top[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
  float factor[2];  // of what was summed up before the last step
  bool rescales = false;

  __device__ float bias(int row, float scale_log2) const {
    return top[row] == -INFINITY ? 0.f : -top[row] * scale_log2;
  }
};

// Exponents of 2 may exceed those of `top` by this much before it moves. So nearly all steps leave it as it is, and
// need no exchange between threads; exponentials up to 2^8 lose nothing in fp32, bf16 and fp16.
constexpr float kHeadroom = 8;

// Of the quad of threads that have the same rows.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Moves `top` where scores exceed it. Sets `rescales`, for the whole warp.
template <int Groups>
__device__ void raise_top(const float (&s)[Groups][4], RowState& rows, float scale_log2, float headroom) {
  float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
    most[0] = fmaxf(most[0], fmaxf(s[g][0], s[g][1]));
    most[1] = fmaxf(most[1], fmaxf(s[g][2], s[g][3]));
  }
  const bool exceeds = most[0] > rows.top[0] + headroom || most[1] > rows.top[1] + headroom;
  rows.rescales = __any_sync(0xffffffffu, exceeds);
  if (!rows.rescales) return;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float top = quad_max(fmaxf(most[r], rows.top[r]));
    rows.factor[r] = rows.top[r] == -INFINITY ? 0.f : exp2_of((rows.top[r] - top) * scale_log2);
    rows.sum[r] *= rows.factor[r];
    rows.top[r] = top;
  }
}

// Where a row's greatest exponent lies when `top` moves, and which one moves it.
struct ExponentRange {
  float moved, most;
};
constexpr ExponentRange kExponents = {0, kHeadroom};

// Moves `top` such that the greatest exponent of each row is at most `moved`, and just that where the row had no keys
// before.
template <int Groups>
__device__ void move_exponents(float (&x)[Groups][4], RowState& rows, float moved) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float most = -INFINITY;
#pragma unroll
    for (int g = 0; g < Groups; ++g) most = fmaxf(most, fmaxf(x[g][2 * r], x[g][2 * r + 1]));
    most = quad_max(most) - moved;
    const bool had_none = rows.top[r] == -INFINITY;
    const float top = had_none ? most : rows.top[r] + fmaxf(most, 0.f);
    const float by = had_none ? most : top - rows.top[r];  // as `top` moves, and not by less than it can
    rows.factor[r] = had_none ? 0.f : exp2_of(-by);
    rows.top[r] = top;
    rows.sum[r] *= rows.factor[r];
#pragma unroll
    for (int g = 0; g < Groups; ++g) {
#pragma unroll
      for (int e = 0; e < 2; ++e) x[g][2 * r + e] -= by == -INFINITY ? 0.f : by;
    }
  }
}

// Makes exponents weights, and adds these up.
template <int Groups>
__device__ void exponentiate(float (&x)[Groups][4], RowState& rows) {
  float sum[2] = {0, 0};
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      x[g][e] = exp2_of(x[g][e]);
      sum[e / 2] += x[g][e];
    }
  }
  rows.sum[0] += sum[0];
  rows.sum[1] += sum[1];
}

// Makes the scores exponentials and adds these up.
template <int Groups>
__device__ void exponentiate(float (&s)[Groups][4], RowState& rows, float scale_log2) {
  const float bias[2] = {rows.bias(0, scale_log2), rows.bias(1, scale_log2)};
  float sum[2] = {0, 0};
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      s[g][e] = exp2_of(fmaf(s[g][e], scale_log2, bias[e / 2]));
      sum[e / 2] += s[g][e];
    }
  }
  rows.sum[0] += sum[0];
  rows.sum[1] += sum[1];
}

// Makes scores weights, and adds these up, as raise_top and exponentiate do, with fewer instructions. But more of them
// have three operands, which takes longer while a product with sums in registers is under way: so some kernels are
// slower with it. `top` is an exponent here, of a scale of 1.
template <int Groups>
__device__ void make_weights(float (&s)[Groups][4], RowState& rows, float scale_log2, ExponentRange range) {
  const float bias[2] = {rows.bias(0, 1), rows.bias(1, 1)};
  // Compared as integers, by instructions with three operands. Their order is that of numbers where one of two is not
  // negative, as all that exceed the range are.
  int most[2] = {INT_MIN, INT_MIN};
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int e = 0; e < 4; ++e) s[g][e] = fmaf(s[g][e], scale_log2, bias[e / 2]);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      most[r] = max(most[r], max(__float_as_int(s[g][2 * r]), __float_as_int(s[g][2 * r + 1])));
    }
  }
  const bool has_none = rows.top[0] == -INFINITY || rows.top[1] == -INFINITY;
  const bool exceeds = max(most[0], most[1]) > __float_as_int(range.most);
  rows.rescales = __any_sync(0xffffffffu, exceeds || has_none);
  if (rows.rescales) move_exponents(s, rows, range.moved);
  exponentiate(s, rows);
}

// Makes sums refer to the new `top`.
template <int Groups>
__device__ void rescale(float (&sums)[Groups][4], const RowState& rows) {
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[g][e] *= rows.factor[e / 2];
  }
}

// Row i sees keys i + low up to i + high, below the end.
struct SeenKeys {
  int low, high, end;
};

// Sets the scores of a unit's keys that a row does not see to -inf, of all keys where the unit is not used. s: of the
// unit from group `from` on. row: the thread's first.
template <int Count, int Groups>
__device__ void hide_unit(float (&s)[Groups][4], int from, uint32_t unit, uint32_t use, int row, int lane,
                          const SeenKeys& seen) {
  const int first = int(unit & kUnitNumber) * kAttentionUnit + 2 * (lane % 4);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int away = first - (row + 8 * r);  // key - query, of the thread's first column
    const int low = seen.low - away;
    const int high = (unit & use) != 0 ? min(seen.high - away, seen.end - 1 - first) : INT_MIN;
#pragma unroll
    for (int g = 0; g < Count; ++g) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (g * 8 + e < low || g * 8 + e > high) s[from + g][r * 2 + e] = -INFINITY;
      }
    }
  }
}

// The same of a step's two units.
template <int Groups>
__device__ void hide(float (&s)[Groups][4], const AttentionStep& step, uint32_t use, int row, int lane,
                     const SeenKeys& seen) {
#pragma unroll
  for (int u = 0; u < 2; ++u) hide_unit<Groups / 2>(s, u * Groups / 2, step.unit[u], use, row, lane, seen);
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
