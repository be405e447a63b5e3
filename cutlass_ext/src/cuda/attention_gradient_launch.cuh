// SPDX-License-Identifier: Apache-2.0
// The host's side of cuda/attention_gradient.cuh and cuda/attention_rows.cuh.
#pragma once

#include <algorithm>

#include "cuda/attention_gradient.cuh"
#include "cuda/attention_map.h"
#include "cuda/attention_rows.cuh"
#include "cuda/launch.cuh"

namespace sparsek::cuda {
namespace attention_gradient {

template <class C>
cudaError_t prepare_kernel() {
  static_assert(sizeof(Shared<C>) <= 227 * 1024);
  return cudaFuncSetAttribute(gradient_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<C>));
}

template <class C>
cudaError_t make_maps(Params& p) {
  const AttentionGradientArgs& args = p.args;
  // Without keys or queries no step loads any.
  const auto of_queries = [&](const void* data, const HeadStrides& stride) {
    return HeadTensor{args.seq_q > 0 ? data : args.k, stride, args.batch, args.heads_q, args.seq_q};
  };
  const auto of_keys = [&](const void* data, const HeadStrides& stride) {
    return HeadTensor{args.seq_k > 0 ? data : args.q, stride, args.batch, args.heads_k, args.seq_k};
  };
  const HeadTensor q = of_queries(args.q, args.stride_q), grad_o = of_queries(args.grad_o, args.stride_grad_o);
  const HeadTensor k = of_keys(args.k, args.stride_k), v = of_keys(args.v, args.stride_v);
  const auto make = [](CUtensorMap* map, const HeadTensor& of, int box_rows) {
    return of.data == nullptr ? cudaSuccess : make_attention_map(map, of, C::kHeadSize, box_rows);
  };
  cudaError_t error = make(C::kOfKeys ? &p.met_x : &p.own_x, q, kAttentionUnit);
  if (error == cudaSuccess) error = make(C::kOfKeys ? &p.met_y : &p.own_y, grad_o, kAttentionUnit);
  if (error == cudaSuccess) error = make(C::kOfKeys ? &p.own_x : &p.met_x, k, kAttentionUnit);
  if (error == cudaSuccess) error = make(C::kOfKeys ? &p.own_y : &p.met_y, v, kAttentionUnit);
  const auto gradient = [&](void* data, const HeadStrides& stride) {
    return C::kOfKeys ? HeadTensor{data, stride, args.batch, args.heads_k, args.seq_k}
                      : HeadTensor{data, stride, args.batch, args.heads_q, args.seq_q};
  };
  if (error == cudaSuccess) error = make(&p.grad_x, gradient(args.grad_x, args.stride_grad_x), kWarpRows);
  if (error == cudaSuccess) error = make(&p.grad_y, gradient(args.grad_y, args.stride_grad_y), kWarpRows);
  return error;
}

template <class C>
cudaError_t launch(const AttentionGradientArgs& args, cudaStream_t stream) {
  if (args.tile_count == 0) return cudaSuccess;
  constexpr double kLog2OfE = 1.4426950408889634;
  Params p = {};
  p.args = args;
  p.scale_log2 = static_cast<float>(args.scale * kLog2OfE);
  const cudaError_t error = make_maps<C>(p);
  if (error != cudaSuccess) return error;
  return launch_kernel(gradient_kernel<C>, std::min(args.workers, args.tile_count), kThreads, sizeof(Shared<C>), stream,
                       {}, p);
}

template <class Element, int HeadSize>
cudaError_t launch_rows(const AttentionRowsArgs& args, cudaStream_t stream) {
  const int64_t rows = int64_t{args.batch} * args.heads_q * args.padded;
  if (rows == 0) return cudaSuccess;
  constexpr int kRows = kRowThreads / (HeadSize / kOfLane);  // of a CTA
  return launch_kernel(rows_kernel<Element, HeadSize>, static_cast<int>((rows + kRows - 1) / kRows), kRowThreads, 0,
                       stream, {}, args);
}

template <class Element, int HeadSize>
cudaError_t prepare() {
  const cudaError_t error = prepare_kernel<Config<Element, HeadSize, false>>();
  if (error != cudaSuccess) return error;
  cudaFuncAttributes loaded;
  const cudaError_t rows = cudaFuncGetAttributes(&loaded, rows_kernel<Element, HeadSize>);
  return rows != cudaSuccess ? rows : prepare_kernel<Config<Element, HeadSize, true>>();
}

template <int HeadSize>
AttentionBackwardOps ops(sparsek_dtype dtype) {
  using Bf16 = cutlass::bfloat16_t;
  using Fp16 = cutlass::half_t;
  if (dtype == SPARSEK_BF16) {
    return {prepare<Bf16, HeadSize>, launch_rows<Bf16, HeadSize>, launch<Config<Bf16, HeadSize, false>>,
            launch<Config<Bf16, HeadSize, true>>};
  }
  return {prepare<Fp16, HeadSize>, launch_rows<Fp16, HeadSize>, launch<Config<Fp16, HeadSize, false>>,
          launch<Config<Fp16, HeadSize, true>>};
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
