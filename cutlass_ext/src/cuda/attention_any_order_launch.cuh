// SPDX-License-Identifier: Apache-2.0
// The host's side of cuda/attention_any_order.cuh, and the kernel that makes the gradient of queries of its sums.
#pragma once

#include "cuda/attention_any_order.cuh"
#include "cuda/attention_gradient_launch.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

struct QuerySumsParams {
  AttentionQuerySumsArgs args;
  CUtensorMap grad_q;
};

constexpr int kQuerySumsThreads = kAttentionTile / kWarpRows * 32;

// A CTA has a tile of 128 queries of a head, a warp 16 of them.
template <class C>
__global__ void __launch_bounds__(kQuerySumsThreads) query_sums_kernel(const __grid_constant__ QuerySumsParams p) {
  extern __shared__ __align__(1024) uint8_t memory[];  // (chunk, 128, 64) elements
  const AttentionQuerySumsArgs& args = p.args;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const int tiles = args.padded / kAttentionTile, head = int(blockIdx.x) / tiles, tile = int(blockIdx.x) % tiles;
  const float4* const from = reinterpret_cast<const float4*>(args.sums_q) +
                             (int64_t(blockIdx.x) * 2 + warp / 4) * (kAttentionUnit * C::kHeadSize / 4) + lane;
  float sums[C::kGroups][4];
#pragma unroll
  for (int g = 0; g < C::kGroups; ++g) {
    const int half = g / C::kHalfGroups, group = g % C::kHalfGroups;
    const float4 four = __ldcs(from + ((half * 4 + warp % 4) * C::kHalfGroups + group) * 32);
    sums[g][0] = four.x, sums[g][1] = four.y, sums[g][2] = four.z, sums[g][3] = four.w;
  }
  const float factors[2] = {args.scale, args.scale};
  const uint32_t buffer = shared_address(memory) + warp * kWarpRows * kRowBytes;
  const int row = tile * kAttentionTile + warp * kWarpRows;
  attention_forward::store_rows<typename C::Element>(p.grad_q, sums, factors, buffer,
                                                     {row, head % args.heads_q, head / args.heads_q}, lane);
  if (lane == 0) cute::tma_store_wait<0>();
}

template <class C>
cudaError_t prepare_any_order() {
  static_assert(sizeof(Shared<C>) <= 227 * 1024);
  const cudaError_t error =
      cudaFuncSetAttribute(any_order_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<C>));
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(query_sums_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, C::kOwnBytes);
}

template <class C>
cudaError_t launch_any_order(const AttentionGradientArgs& args, float* sums_q, cudaStream_t stream) {
  if (args.tile_count == 0) return cudaSuccess;
  constexpr double kLog2OfE = 1.4426950408889634;
  AnyOrderParams p = {};
  p.of_keys.args = args;
  p.of_keys.scale_log2 = static_cast<float>(args.scale * kLog2OfE);
  p.sums_q = sums_q;
  const cudaError_t error = make_maps<C>(p.of_keys);
  if (error != cudaSuccess) return error;
  return launch_kernel(any_order_kernel<C>, std::min(args.workers, args.tile_count), kThreads, sizeof(Shared<C>),
                       stream, {}, p);
}

template <class C>
cudaError_t launch_query_sums(const AttentionQuerySumsArgs& args, cudaStream_t stream) {
  const int64_t tiles = int64_t{args.batch} * args.heads_q * (args.padded / kAttentionTile);
  if (tiles == 0) return cudaSuccess;
  QuerySumsParams p = {};
  p.args = args;
  const cudaError_t error =
      make_attention_map(&p.grad_q, HeadTensor{args.grad_q, args.stride_grad_q, args.batch, args.heads_q, args.seq_q},
                         args.head_size, kWarpRows);
  if (error != cudaSuccess) return error;
  return launch_kernel(query_sums_kernel<C>, static_cast<int>(tiles), kQuerySumsThreads, C::kOwnBytes, stream, {}, p);
}

template <int HeadSize>
AttentionAnyOrderOps any_order_ops(sparsek_dtype dtype) {
  const auto of = [](auto element) -> AttentionAnyOrderOps {
    using C = AnyOrderConfig<decltype(element), HeadSize>;
    return {prepare_any_order<C>, launch_any_order<C>, launch_query_sums<C>};
  };
  return dtype == SPARSEK_BF16 ? of(cutlass::bfloat16_t()) : of(cutlass::half_t());
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
