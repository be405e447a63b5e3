// SPDX-License-Identifier: Apache-2.0
// The host's side of cuda/attention_forward.cuh.
#pragma once

#include <algorithm>

#include "cuda/attention_forward.cuh"
#include "cuda/attention_map.h"

namespace sparsek::cuda {
namespace attention_forward {

template <class C>
cudaError_t prepare() {
  static_assert(sizeof(Shared<C>) <= 227 * 1024);
  return cudaFuncSetAttribute(attention_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<C>));
}

// What a kernel of C is given.
template <class C>
cudaError_t make_params(const AttentionForwardArgs& args, const AttentionPages& pages, Params* out) {
  constexpr double kLog2OfE = 1.4426950408889634;
  Params& p = *out;
  p.args = args;
  p.pages = pages;
  const double cap = args.general.soft_cap;
  const double scale = cap > 0 ? cap : args.scale;
  p.scale_log2 = static_cast<float>((C::kTerms && args.general.terms.bias != nullptr ? 1 : scale) * kLog2OfE);
  p.score_scale = static_cast<float>(scale);
  p.cap_log2 = cap > 0 ? static_cast<float>(2 * kLog2OfE * args.scale / cap) : 0.f;
  // Without keys no step loads any.
  const void* const k = args.seq_k > 0 ? args.k : args.q;
  const void* const v = args.seq_k > 0 ? args.v : args.q;
  const HeadTensor q = {args.q, args.stride_q, args.batch, args.heads_q, args.seq_q},
                   o = {args.o, args.stride_o, args.batch, args.heads_q, args.seq_q};
  const auto keys = [&](const void* of, const HeadStrides& stride) -> HeadTensor {
    if (C::kPaged) return {of, stride, pages.count, args.heads_k, pages.rows};
    return {of, stride, args.batch, args.heads_k, args.seq_k};
  };
  const auto make = [&](CUtensorMap* map, const HeadTensor& of, int box_rows) {
    return make_attention_map(map, of, args.head_size, box_rows);
  };
  const int box = C::kGeneral ? args.general.box : kAttentionUnit;
  cudaError_t error = make(&p.map_q, q, kAttentionUnit);
  if (error == cudaSuccess) error = make(&p.map_k, keys(k, args.stride_k), box);
  if (error == cudaSuccess) error = make(&p.map_v, keys(v, args.stride_v), box);
  if (error == cudaSuccess) error = make(&p.map_o, o, kWarpRows);
  return error;
}

template <class C>
cudaError_t launch(const AttentionForwardArgs& args, const AttentionPages& pages, const AttentionScales& /*scales*/,
                   cudaStream_t stream) {
  if (args.tile_count == 0) return cudaSuccess;
  Params p = {};
  if (const cudaError_t error = make_params<C>(args, pages, &p); error != cudaSuccess) return error;
  return launch_kernel(attention_kernel<C>, std::min(args.workers, args.tile_count), kThreads, sizeof(Shared<C>),
                       stream, {}, p);
}

template <int HeadSize, bool Alone, StepKind Steps = StepKind::kPlain>
AttentionForwardOps ops(sparsek_dtype dtype) {
  using Bf16 = Config<cutlass::bfloat16_t, HeadSize, Alone, Steps>;
  using Fp16 = Config<cutlass::half_t, HeadSize, Alone, Steps>;
  if (dtype == SPARSEK_BF16) return {prepare<Bf16>, launch<Bf16>};
  return {prepare<Fp16>, launch<Fp16>};
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
