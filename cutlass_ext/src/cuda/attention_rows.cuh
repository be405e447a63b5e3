// SPDX-License-Identifier: Apache-2.0
// What attention's backward kernels need of each query (RowSums), from o, its gradient and lse. A lane has 16 bytes of
// a row.
#pragma once

#include <cmath>

#include "cuda/attention_backward.h"

namespace sparsek::cuda {
namespace attention_gradient {

constexpr int kRowThreads = 256, kOfLane = 8;

template <class Element, int HeadSize>
__global__ void __launch_bounds__(kRowThreads) rows_kernel(const __grid_constant__ AttentionRowsArgs args) {
  constexpr int kLanes = HeadSize / kOfLane;
  constexpr float kLog2OfE = 1.4426950408889634f;
  struct alignas(16) Elements {
    Element x[kOfLane];
  };
  const int64_t place = int64_t(blockIdx.x) * (kRowThreads / kLanes) + threadIdx.x / kLanes;
  const int lane = threadIdx.x % kLanes;
  const uint32_t lanes = (0xffffffffu >> (32 - kLanes)) << threadIdx.x % 32 / kLanes * kLanes;  // of the row
  const int row = int(place % args.padded), head = int(place / args.padded % args.heads_q);
  const int64_t batch = place / args.padded / args.heads_q;
  RowSums sums = {-INFINITY, 0.f};
  const bool is_there =
      batch < args.batch && row < args.seq_q && (args.lengths_q == nullptr || row < __ldg(args.lengths_q + batch));
  if (is_there) {
    const auto load = [&](const void* of, const HeadStrides& stride) {
      if (lane * kOfLane >= args.head_size) return Elements{};
      const Element* const from =
          static_cast<const Element*>(of) + batch * stride.batch + head * stride.head + row * stride.row;
      return reinterpret_cast<const Elements*>(from)[lane];
    };
    const Elements o = load(args.o, args.stride_o), grad_o = load(args.grad_o, args.stride_grad_o);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kOfLane; ++i) sum = fmaf(float(o.x[i]), float(grad_o.x[i]), sum);
#pragma unroll
    for (int away = kLanes / 2; away > 0; away /= 2) sum += __shfl_xor_sync(lanes, sum, away);
    const float lse = args.lse[(batch * args.heads_q + head) * args.seq_q + row];
    if (lse != -INFINITY) sums = {-lse * kLog2OfE, sum};
  }
  if (batch < args.batch && lane == 0) args.rows[place] = sums;
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
