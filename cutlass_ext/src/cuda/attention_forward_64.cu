// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/attention_forward.cuh and cuda/attention_pairs.cuh for heads of 64 columns.
#include "cuda/attention_launch.cuh"
#include "cuda/attention_pairs.cuh"

namespace sparsek::cuda {
namespace attention_forward {
namespace {

// Of how many tiles for each CTA on pairs are faster. A tile by itself takes longer in a pair, so where few follow each
// other, the last ones end later (docs/notes/attention-forward.md).
constexpr int kPairTiles = 4;

template <class Element>
cudaError_t prepare_both() {
  using C = PairConfig<Element>;
  static_assert(sizeof(PairShared<C>) <= 227 * 1024);
  const cudaError_t error = cudaFuncSetAttribute(attention_pairs_kernel<C>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 sizeof(PairShared<C>));
  return error == cudaSuccess ? prepare<Config<Element, 64>>() : error;
}

template <class Element>
cudaError_t launch_either(const AttentionForwardArgs& args, const AttentionPages& pages, const AttentionScales& scales,
                          cudaStream_t stream) {
  if (args.tile_count < kPairTiles * args.workers) {
    return launch<Config<Element, 64>>(args, pages, scales, stream);
  }
  using C = PairConfig<Element>;
  Params p = {};
  if (const cudaError_t error = make_params<C>(args, pages, &p); error != cudaSuccess) return error;
  return launch_kernel(attention_pairs_kernel<C>, args.workers, kPairThreads, sizeof(PairShared<C>), stream, {}, p);
}

template <class Element>
AttentionForwardOps ops_of_either() {
  return {prepare_both<Element>, launch_either<Element>};
}

}  // namespace
}  // namespace attention_forward

AttentionForwardOps attention_forward_64(sparsek_dtype dtype) {
  using namespace attention_forward;
  return dtype == SPARSEK_BF16 ? ops_of_either<cutlass::bfloat16_t>() : ops_of_either<cutlass::half_t>();
}

}  // namespace sparsek::cuda
