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
  const auto make = [&](CUtensorMap* map, const HeadTensor& of, int box_rows) {
    return of.data == nullptr ? cudaSuccess : make_attention_map(map, of, args.head_size, box_rows);
  };
  const int box = C::kGeneral ? args.general.box : kAttentionUnit;
  cudaError_t error = make(&p.own_x, C::kOfKeys ? k : q, kAttentionUnit);
  if constexpr (C::kOfMass) return error == cudaSuccess ? make(&p.met_x, k, box) : error;
  if (error == cudaSuccess) error = make(&p.own_y, C::kOfKeys ? v : grad_o, kAttentionUnit);
  if (error == cudaSuccess) error = make(&p.met_x, C::kOfKeys ? q : k, box);
  if (error == cudaSuccess) error = make(&p.met_y, C::kOfKeys ? grad_o : v, box);
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
  const double cap = args.general.soft_cap;
  p.scale_log2 = static_cast<float>((cap > 0 ? cap : args.scale) * kLog2OfE);
  p.cap_log2 = cap > 0 ? static_cast<float>(2 * kLog2OfE * args.scale / cap) : 0.f;
  const cudaError_t error = make_maps<C>(p);
  if (error != cudaSuccess) return error;
  return launch_kernel(gradient_kernel<C>, std::min(args.workers, args.tile_count), kThreads, sizeof(Shared<C>), stream,
                       {}, p);
}

// The gradients of keys and of values. Registers do not suffice for both in one kernel where heads are of more than 128
// columns.
template <class Element, int HeadSize, StepKind Steps>
cudaError_t launch_keys(const AttentionGradientArgs& args, cudaStream_t stream) {
  if constexpr (HeadSize <= 128) {
    return launch<Config<Element, HeadSize, true, Steps>>(args, stream);
  } else {
    cudaError_t error = cudaSuccess;
    if (args.grad_x != nullptr) error = launch<Config<Element, HeadSize, true, Steps, Gradients::kX>>(args, stream);
    if (error != cudaSuccess || args.grad_y == nullptr) return error;
    return launch<Config<Element, HeadSize, true, Steps, Gradients::kY>>(args, stream);
  }
}

template <class Element, int HeadSize, StepKind Steps>
cudaError_t prepare_keys() {
  if constexpr (HeadSize <= 128) {
    return prepare_kernel<Config<Element, HeadSize, true, Steps>>();
  } else {
    const cudaError_t error = prepare_kernel<Config<Element, HeadSize, true, Steps, Gradients::kX>>();
    return error != cudaSuccess ? error : prepare_kernel<Config<Element, HeadSize, true, Steps, Gradients::kY>>();
  }
}

// Lanes of a row are a power of two.
constexpr int row_columns(int head_size) { return head_size == 96 ? 128 : head_size; }

template <class Element, int Columns>
cudaError_t launch_rows(const AttentionRowsArgs& args, cudaStream_t stream) {
  const int64_t rows = int64_t{args.batch} * args.heads_q * args.padded;
  if (rows == 0) return cudaSuccess;
  constexpr int kRows = kRowThreads / (Columns / kOfLane);  // of a CTA
  return launch_kernel(rows_kernel<Element, Columns>, static_cast<int>((rows + kRows - 1) / kRows), kRowThreads, 0,
                       stream, {}, args);
}

template <class Element, int HeadSize, StepKind Steps>
cudaError_t prepare() {
  const cudaError_t error = prepare_kernel<Config<Element, HeadSize, false, Steps>>();
  if (error != cudaSuccess) return error;
  cudaFuncAttributes loaded;
  const cudaError_t rows = cudaFuncGetAttributes(&loaded, rows_kernel<Element, row_columns(HeadSize)>);
  return rows != cudaSuccess ? rows : prepare_keys<Element, HeadSize, Steps>();
}

template <int HeadSize, StepKind Steps = StepKind::kPlain>
AttentionBackwardOps ops(sparsek_dtype dtype) {
  using Bf16 = cutlass::bfloat16_t;
  using Fp16 = cutlass::half_t;
  const auto of = [](auto element) -> AttentionBackwardOps {
    using Element = decltype(element);
    return {prepare<Element, HeadSize, Steps>, launch_rows<Element, row_columns(HeadSize)>,
            launch<Config<Element, HeadSize, false, Steps>>, launch_keys<Element, HeadSize, Steps>};
  };
  return dtype == SPARSEK_BF16 ? of(Bf16()) : of(Fp16());
}

}  // namespace attention_gradient
}  // namespace sparsek::cuda
