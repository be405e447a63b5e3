// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_pairs.cuh.
#include "cuda/attention_pairs.h"

#include "cuda/attention_launch.cuh"
#include "cuda/attention_pairs.cuh"

namespace sparsek::cuda {
namespace attention_forward {
namespace {

template <class C>
cudaError_t prepare_pairs() {
  static_assert(sizeof(PairShared<C>) <= 227 * 1024);
  return cudaFuncSetAttribute(attention_pairs_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              sizeof(PairShared<C>));
}

template <class C>
cudaError_t launch_pairs(const AttentionForwardArgs& args, const AttentionPages& pages,
                         const AttentionScales& /*scales*/, cudaStream_t stream) {
  if (args.tile_count == 0) return cudaSuccess;
  Params p = {};
  if (const cudaError_t error = make_params<C>(args, pages, &p); error != cudaSuccess) return error;
  return launch_kernel(attention_pairs_kernel<C>, std::min(args.workers, args.tile_count), kPairThreads,
                       sizeof(PairShared<C>), stream, {}, p);
}

template <class Element>
AttentionForwardOps pair_ops() {
  using C = PairConfig<Element>;
  return {prepare_pairs<C>, launch_pairs<C>};
}

}  // namespace
}  // namespace attention_forward

AttentionForwardOps attention_pairs_64(sparsek_dtype dtype) {
  using namespace attention_forward;
  return dtype == SPARSEK_BF16 ? pair_ops<cutlass::bfloat16_t>() : pair_ops<cutlass::half_t>();
}

}  // namespace sparsek::cuda
