// SPDX-License-Identifier: Apache-2.0
// The host's side of cuda/attention_forward_e4m3.cuh.
#pragma once

#include <algorithm>

#include "cuda/attention_forward_e4m3.cuh"
#include "cuda/attention_map.h"
#include "cuda/launch.cuh"

namespace sparsek::cuda {
namespace attention_e4m3 {

template <class C>
cudaError_t prepare() {
  static_assert(sizeof(Memory<C>) <= 227 * 1024);
  return cudaFuncSetAttribute(attention_e4m3_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory<C>));
}

// As make_attention_map, of bytes: the map has them in pairs.
inline cudaError_t make_byte_map(CUtensorMap* map, const HeadTensor& of, int columns, int box_columns, int box_rows) {
  constexpr int64_t kLeast = 16;
  const auto bytes = [](int64_t stride, int extent) { return extent > 1 ? stride : kLeast; };
  const HeadMapShape shape = {
      {columns / 2, std::max(of.rows, 1), of.heads, of.batch},
      {bytes(of.stride.row, of.rows), bytes(of.stride.head, of.heads), bytes(of.stride.batch, of.batch)}};
  return make_head_map(map, of.data, shape, box_columns / 2, box_rows);
}

template <class C>
cudaError_t launch(const AttentionForwardArgs& args, const AttentionPages& /*pages*/, const AttentionScales& scales,
                   cudaStream_t stream) {
  if (args.tile_count == 0) return cudaSuccess;
  constexpr double kLog2OfE = 1.4426950408889634;
  Params p = {};
  p.args = args;
  p.scales = scales;
  p.scale_log2 = static_cast<float>(args.scale * kLog2OfE);
  const HeadTensor q = {args.q, args.stride_q, args.batch, args.heads_q, args.seq_q},
                   k = {args.k, args.stride_k, args.batch, args.heads_k, args.seq_k},
                   v = {args.v, args.stride_v, args.batch, args.heads_k, args.head_size},
                   o = {args.o, args.stride_o, args.batch, args.heads_q, args.seq_q};
  cudaError_t error = make_byte_map(&p.map_q, q, args.head_size, C::kHeadSize, kAttentionUnit);
  // Without keys no step loads any.
  if (args.seq_k > 0) {
    if (error == cudaSuccess) error = make_byte_map(&p.map_k, k, args.head_size, C::kHeadSize, kAttentionUnit);
    if (error == cudaSuccess) {
      error = make_byte_map(&p.map_v, v, static_cast<int>(args.stride_v.row), kAttentionUnit, C::kHeadSize);
    }
  }
  if (error == cudaSuccess) error = make_attention_map(&p.map_o, o, args.head_size, kWarpRows);
  if (error != cudaSuccess) return error;
  return launch_kernel(attention_e4m3_kernel<C>, std::min(args.workers, args.tile_count), kThreads, sizeof(Memory<C>),
                       stream, {}, p);
}

template <int HeadSize, StepKind Steps>
AttentionForwardOps ops(sparsek_dtype dtype_o) {
  using Bf16 = Config<cutlass::bfloat16_t, HeadSize, Steps>;
  using Fp16 = Config<cutlass::half_t, HeadSize, Steps>;
  if (dtype_o == SPARSEK_BF16) return {prepare<Bf16>, launch<Bf16>};
  return {prepare<Fp16>, launch<Fp16>};
}

template <int HeadSize>
AttentionForwardOps ops(sparsek_dtype dtype_o, bool general) {
  return general ? ops<HeadSize, StepKind::kUnits>(dtype_o) : ops<HeadSize, StepKind::kPlain>(dtype_o);
}

}  // namespace attention_e4m3
}  // namespace sparsek::cuda
